// Proves that unreadable records cost about as much as others: a journal with thousands of them is folded
// with few requests to the broker, and continues; and that a record damaged on its way from the broker to the
// host, by a connection that changes a bit of it once, is read again and applied.
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS } from "../../support/limits.ts";
import { control } from "./control.ts";

const JUNK = 4_000;
const subjects = new JobSubjects("j");

let job: TestJob;
let raw: NatsConnection | undefined;
let proxy: Server | undefined;

afterEach(async () => {
  await raw?.close();
  await job.remove();
  proxy?.close();
  [raw, proxy] = [undefined, undefined];
});

test("a journal full of junk is folded with few requests", async () => {
  // Requests that keep short leases would count, the more the longer a busy machine takes.
  job = await TestJob.start({ shards: 1, leaseMs: LASTING_LEASE_MS });
  await job.host();
  const client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("count", new BigInt64Array(1));
  await client.finishInit();
  raw = await connect({ servers: job.broker.url });
  const manager = await jetstreamManager(raw);
  const before = (await manager.getAccountInfo()).api.total;
  const subject = subjects.log(0, "eve", "push", "count", 0);
  for (let i = 0; i < JUNK; i++)
    raw.publish(
      subject,
      Uint8Array.from({ length: 200 }, () => i),
    );
  await raw.request(subject, new Uint8Array(1), { timeout: HANG_MS });
  await client.pushFull("count", BigInt64Array.of(1n), 1, 1);
  expect((await client.pullFull("count")).data).toEqual(BigInt64Array.of(1n));
  const asked = (await manager.getAccountInfo()).api.total - before;
  expect(asked).toBeLessThan(JUNK / 2);
  const { shards } = await control(job, "hosts", {});
  expect(shards).toMatchObject([
    { senders: { unreadable: JUNK + 1, unreadableOf: [["eve", JUNK + 1]] } },
  ]);
});

/** Passes everything on, and changes one bit where the marker first comes from the broker. */
async function hurtingProxy(brokerPort: number, marker: Buffer): Promise<{ port: number }> {
  let isHurt = false;
  const server = createServer((near: Socket) => {
    const far = createConnection(brokerPort, "127.0.0.1");
    near.pipe(far);
    far.on("data", (chunk: Buffer) => {
      const at = isHurt ? -1 : chunk.indexOf(marker);
      if (at >= 0) {
        isHurt = true;
        chunk[at] = (chunk[at] ?? 0) ^ 1;
      }
      near.write(chunk);
    });
    for (const socket of [near, far]) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        near.destroy();
        far.destroy();
      });
    }
  });
  proxy = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port");
  return { port: address.port };
}

test("a record hurt on its way is read again and applied", async () => {
  job = await TestJob.start({ shards: 1 });
  const values = BigInt64Array.of(0x11223344556677n, 0x99n);
  const marker = Buffer.from(values.buffer);
  const { port } = await hurtingProxy(job.broker.port, marker);
  const connection = { servers: [`nats://127.0.0.1:${port}`], timeoutMs: HANG_MS };
  await job.host({ connection });
  const client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("w", new BigInt64Array(2));
  await client.finishInit();
  await client.pushFull("w", values, 1, 1);
  expect((await client.pullFull("w")).data).toEqual(values);
  const { shards } = await control(job, "hosts", {});
  expect(shards).toMatchObject([{ senders: { unreadable: 0 } }]);
});
