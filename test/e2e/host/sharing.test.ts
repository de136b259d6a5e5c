// Proves that hosts share the shards of a job while trainers push without a failed call: a host
// that joins gets its share, those of a killed one are taken over after its lease, those of a
// closed one at once, and one that was paused past its lease steps back. Every value is compared
// with a fold of the journals.
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { MORTAL_LEASE_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { checkValues, initialize, Training } from "./training.ts";

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

const ALL = [0, 1, 2, 3];

async function startTraining(): Promise<{ first: Client; training: Training }> {
  const clients = await Promise.all(["a", "b"].map((name) => job.trainer(name)));
  const [first] = clients as [Client, Client];
  await initialize(first, 2);
  return { first, training: new Training(clients) };
}

/** Waits until each of two hosts serves something and together they serve everything once. */
async function shared(one: TestHost, other: TestHost): Promise<void> {
  await other.until(() => other.serving.length > 0);
  await one.until(() => {
    const shards = [...one.serving, ...other.serving].sort();
    return one.serving.length > 0 && shards.join() === ALL.join();
  });
}

async function servesAll(host: TestHost): Promise<void> {
  await host.until(() => host.serving.join() === ALL.join());
}

test("a joining host gets its share; a killed and a closed one lose theirs", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS });
  const one = await job.host({ id: "one" });
  expect(one.serving).toEqual(ALL);
  const { first, training } = await startTraining();
  const two = await job.host({ id: "two" });
  await shared(one, two);
  await training.progress();
  await two.kill();
  await servesAll(one);
  await training.progress();
  const seven = await job.host({ id: "seven" });
  await shared(one, seven);
  await training.progress();
  await seven.stop();
  expect(seven.lines.at(-1)).toEqual({ type: "stopped" });
  await servesAll(one);
  await training.progress();
  await checkValues(job, first, await training.end());
});

test("a host that sleeps past its lease is deposed, and takes its share again", async () => {
  job = await TestJob.start({
    leaseMs: MORTAL_LEASE_MS,
    snapshotBytes: 100_000,
    retainBytes: 1_000_000_000,
  });
  const one = await job.host({ id: "one" });
  const two = await job.host({ id: "two" });
  await shared(one, two);
  const { first, training } = await startTraining();
  await training.progress();
  const before = two.serving;
  await freeze(two.pid);
  await servesAll(one);
  await training.progress();
  const woken = two.lines.length;
  thaw(two.pid);
  for (const shard of before) {
    // If the other one has given a shard back by then, it is not told that the shard was released.
    await two.line((line) => line.shard === shard && line.type === "serving", woken);
  }
  await shared(one, two);
  await training.progress();
  await checkValues(job, first, await training.end());
  const wrong = [...one.lines, ...two.lines].filter(
    ({ type, error }) => type === "shard-failed" && error?.code !== "NOT_OWNER",
  );
  expect(wrong).toEqual([]);
});
