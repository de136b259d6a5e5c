// Proves through a real broker and host that a C trainer on a slow link is slow and no more, under address and undefined
// behaviour sanitizers: it stays a member of a job whose trainers keep step, its gradients are applied in all blocks, and
// what moves is not sent or asked for again. The link carries little in a second and counts the bytes; nothing here
// depends on how long it takes. And a connection on which nothing moves at all is given up for another one.
import { createConnection, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { LEASE_MS } from "../../../src/protocol/limits.ts";
import type { RunningProgram } from "../../c/running-program.ts";
import { startProgram } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { TestJob } from "../../support/host.ts";
import { SlowLink } from "../../support/slow-link.ts";

const MIB = 1024 ** 2;
/** A step takes longer than a lease lasts. */
const BYTES_PER_SECOND = 1_000_000;
/** Of the bytes of a call: on a busy machine a host may take so long that one block is asked for twice. */
const MOST = 1.5;

let library: BuiltLibrary;
let path: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  path = await library.program("slow-link");
});

afterAll(() => library?.remove());

interface Trainers {
  readonly link: SlowLink;
  /** The trainer with the link, which is selected to initialize, and one without, started by the test. */
  readonly far: RunningProgram;
  readonly startNear: () => RunningProgram;
}

/** Starts a trainer with a slow link, with so many bytes of a parameter and in flight, in a job that keeps step. */
async function start(bytes: number, inFlightBytes: number): Promise<Trainers> {
  const synchronization = { mode: "sync", trainers: 2, reduce: "sum" } as const;
  const job = await TestJob.start({ synchronization, leaseMs: LEASE_MS });
  onTestFinished(() => job.remove());
  await job.host();
  const link = await SlowLink.open(job.broker.port, BYTES_PER_SECOND);
  onTestFinished(() => link.close());
  const trainer = (id: string, url: string): RunningProgram =>
    startProgram(path, [url, job.job, id, `${bytes / 4}`, `${inFlightBytes}`]);
  const far = trainer("far", link.url);
  return { link, far, startNear: () => trainer("near", job.broker.url) };
}

/** What the link has carried while a trainer did what it was told. */
async function carried(
  link: SlowLink,
  work: Promise<string>,
): Promise<{ sent: number; received: number; answer: string }> {
  const { sentBytes, receivedBytes } = link;
  const answer = await work;
  return {
    answer,
    sent: link.sentBytes - sentBytes,
    received: link.receivedBytes - receivedBytes,
  };
}

// Of 8 blocks; of one record, longer than the socket has room for; with room for less than a block in flight.
test.each([
  { bytes: 8 * MIB, inFlightBytes: 0 },
  { bytes: 4 * MIB, inFlightBytes: 0 },
  { bytes: 8 * MIB, inFlightBytes: MIB / 2 },
])(
  "a trainer on a slow link initializes, trains in step and pulls $bytes bytes with $inFlightBytes in flight, and sends nothing twice",
  async ({ bytes, inFlightBytes }) => {
    const { link, far, startNear } = await start(bytes, inFlightBytes);
    const bytesMax = MOST * bytes;
    const initialized = await carried(link, far.ask("init w 100"));
    expect(initialized.answer).toBe("OK session 1");
    expect(initialized.sent).toBeLessThan(bytesMax);
    expect(await far.ask("finish")).toBe("OK session 1");

    const near = startNear();
    for (let step = 1; step <= 2; step++) {
      const nearly = near.ask("push w 1");
      const pushed = await carried(link, far.ask("push w 3"));
      expect(pushed.answer).toBe("OK late 0 session 1");
      expect(await nearly).toMatch(/^OK late 0 /);
      expect(pushed.sent).toBeLessThan(bytesMax);
    }

    const pulled = await carried(link, far.ask("pull w"));
    expect(pulled.answer).toBe(`${100 - 2 * (1 + 3)} session 1`);
    expect(pulled.received).toBeLessThan(bytesMax);
  },
);

/** A line to a broker whose present connections can fall silent, without an end; those made later work. */
async function openLine(brokerPort: number): Promise<{ url: string; silence: () => void }> {
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  const server = createServer((near) => {
    const far = createConnection({ host: "127.0.0.1", port: brokerPort });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (chunk) => {
        if (!silent.has(from)) to.write(chunk);
      });
      from.on("error", () => undefined);
      from.on("close", () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const silence = (): void => {
    for (const socket of sockets) silent.add(socket);
  };
  return { url: `nats://127.0.0.1:${port}`, silence };
}

test("connections on which nothing moves any more are made anew before a call has waited too long", async () => {
  const job = await TestJob.start({ leaseMs: LEASE_MS });
  onTestFinished(() => job.remove());
  await job.host();
  const line = await openLine(job.broker.port);
  const trainer = startProgram(path, [line.url, job.job, "far", "1024", "0"]);
  expect(await trainer.ask("init w 100")).toBe("OK session 1");
  expect(await trainer.ask("finish")).toBe("OK session 1");
  line.silence();
  expect(await trainer.ask("push w 3")).toMatch(/^OK late 0 /);
  line.silence();
  expect(await trainer.ask("pull w")).toMatch(/^97 /);
});
