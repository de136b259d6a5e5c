// Proves that trainers that keep step continue after a shard has fallen back by some steps: the steps that
// had closed there are undone, nobody waits for ever, and every later step is applied on all shards.
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Client, ShardFallback } from "../../../src/client/index.ts";
import { hashName, type SynchronizationInput } from "../../../src/protocol/index.ts";
import { run } from "../../cli/spawn-command.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { failureOf, flipBitOf, streamDirectory } from "./damage.ts";
import { Archive } from "./journal-fold.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let job: TestJob;
let told: ShardFallback[];

afterEach(() => job.remove());

/** A parameter on each shard. */
const [HURT = "", SOUND = ""] = [0, 1].map((shard) => {
  const names = Array.from({ length: 100 }, (_, i) => `w-${i}`);
  return names.find((name) => hashName(name) % 2 === shard) ?? "";
});
/**
 * Outlasts the restart of broker and host, however busy the machine is: trainers stay members. The host looks
 * once in this time whether its shard was recovered.
 */
const LEASE_MS = 15_000;
const GRADIENT = { [HURT]: Float32Array.of(1), [SOUND]: Float32Array.of(1) };

/** Two trainers, and a host. */
async function start(
  synchronization: SynchronizationInput,
): Promise<{ host: TestHost; clients: Client[] }> {
  job = await TestJob.start({ shards: 2, synchronization, leaseMs: LEASE_MS });
  told = [];
  const host = await job.host();
  const onFallback = (fallback: ShardFallback): unknown => told.push(fallback);
  const clients = await Promise.all(["a", "b"].map((id) => job.trainer(id, { onFallback })));
  // Each by itself, so that it lies where its name's hash says.
  for (const name of [HURT, SOUND]) {
    await clients[0]?.createIfNotAlreadyCreated(name, Float32Array.of(0), { learningRate: 1 });
  }
  return { host, clients };
}

async function steps(clients: readonly Client[], count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await Promise.all(clients.map((client) => client.sendGrads(GRADIENT)));
  }
}

async function values(client: Client): Promise<number[]> {
  const pulled = await client.getParams([HURT, SOUND]);
  return pulled.map(({ data }) => Number(data[0]));
}

/** The broker loses the first gradient of step 4 on shard 0; an operator accepts it. */
async function loseStepsFrom4(host: TestHost): Promise<TestHost> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const pushes = (await archive.records(0)).filter(({ subject }) => subject.includes(".push."));
  const hurt = pushes[6];
  if (hurt === undefined) throw new Error("no gradient of step 4");
  await archive.close();
  await job.crash(host);
  await job.broker.stop();
  await flipBitOf(streamDirectory(job, "PS_j_0"), hurt.payload);
  await job.broker.start();
  const second = await job.host();
  expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
  const command = ["recover", "--job", "j", "--url", job.broker.url, "--from", "prefix", "--yes"];
  expect(await run(command)).toMatchObject({ code: 0 });
  await second.until(() => second.serving.includes(0));
  return second;
}

describe("synchronous steps", () => {
  test("continue for a trainer that reads first and one that sends first", async () => {
    const { host, clients } = await start({ mode: "sync", trainers: 2 });
    const [a, b] = clients as [Client, Client];
    await steps(clients, 6);
    expect(await values(a)).toEqual([-6, -6]);
    await loseStepsFrom4(host);
    const sent = b.sendGrads(GRADIENT);
    expect(await values(a)).toEqual([-3, -6]);
    await Promise.all([sent, a.sendGrads(GRADIENT)]);
    await steps(clients, 3);
    expect([await values(a), await values(b)]).toEqual([
      [-7, -10],
      [-7, -10],
    ]);
    expect(clients.map((client) => client.stepsEnded)).toEqual([10, 10]);
    await vi.waitFor(() => expect(told).toHaveLength(2), WAIT);
    expect(told[0]).toMatchObject({ shard: 0, generation: 1 });
  });

  test("continue for trainers that all wait for a step that is undone", async () => {
    const { host, clients } = await start({ mode: "sync", trainers: 2 });
    await steps(clients, 6);
    // Neither has looked since, so both wait for step 6 where only 3 have closed.
    await loseStepsFrom4(host);
    const read = await Promise.all(clients.map((client) => values(client)));
    expect(read).toEqual([
      [-3, -6],
      [-3, -6],
    ]);
    await steps(clients, 2);
    expect(await values(clients[0] as Client)).toEqual([-5, -8]);
  });
});

test("steps of bounded staleness continue, and reads wait for the slowest again", async () => {
  const { host, clients } = await start({ mode: "ssp", trainers: 2, staleness: 1 });
  const [a, b] = clients as [Client, Client];
  await steps(clients, 6);
  await loseStepsFrom4(host);
  expect((await values(a))[1]).toBe(-12);
  await steps(clients, 3);
  expect((await values(a))[1]).toBe(-18);
  await b.sendGrads(GRADIENT);
  await b.sendGrads(GRADIENT);
  const waiting = await atDeadline("TIMEOUT", (timeoutMs) => b.getParams([HURT], { timeoutMs }));
  expect(waiting).toMatchObject({ code: "TIMEOUT" });
  await a.sendGrads(GRADIENT);
  expect((await values(b))[1]).toBe(-21);
});
