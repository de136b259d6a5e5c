// Proves synchronization by steps with real hosts: trainers in step compute what one trainer with the mean of
// their gradients does, to the bit; a dead trainer delays the others for its lease and no longer; late and
// restarted trainers find their place; backups are left out; ssp holds a fast trainer back until the slow one
// moves; and a host that takes a shard over in the middle of a step ends it with the same result.
import { connect } from "@nats-io/transport-node";
import { afterEach, describe, expect, test } from "vitest";
import { openBucket } from "../../../src/actors/journal/kv-bucket.ts";
import type { Client } from "../../../src/client/index.ts";
import {
  type Fields,
  JobSubjects,
  type SynchronizationInput,
} from "../../../src/protocol/index.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { control, snapshotAll } from "./control.ts";
import { Archive } from "./journal-fold.ts";
import { askRaw } from "./raw-trainer.ts";
import { StepTrainer } from "./step-trainer.ts";

const SHARDS = 2;
const ELEMENTS = 64;

const jobs: TestJob[] = [];
const trainers: StepTrainer[] = [];

afterEach(async () => {
  await Promise.all(trainers.splice(0).map((trainer) => trainer.kill()));
  await Promise.all(jobs.splice(0).map((job) => job.remove()));
});

async function startJob(
  synchronization: SynchronizationInput,
  leaseMs: number = LASTING_LEASE_MS,
): Promise<TestJob> {
  const job = await TestJob.start({ shards: SHARDS, synchronization, leaseMs });
  jobs.push(job);
  return job;
}

async function enter(job: TestJob, ...ids: string[]): Promise<StepTrainer[]> {
  const entered: StepTrainer[] = [];
  for (const id of ids) entered.push(await StepTrainer.enter(job, id));
  trainers.push(...entered);
  return entered;
}

/** A job with the parameter `w`, all 1, whose gradients are subtracted as they are. */
async function ready(job: TestJob, learningRate = 1): Promise<{ client: Client; shard: number }> {
  const client = await job.trainer("observer");
  await client.beginInit();
  await client.initParam("w", new Float32Array(ELEMENTS).fill(1), { learningRate });
  await client.finishInit();
  const [info] = await client.listParams();
  return { client, shard: info?.layout.firstShard ?? -1 };
}

function all(value: number): Float32Array {
  return new Float32Array(ELEMENTS).fill(value);
}

async function firstOf(client: Client): Promise<number | bigint | undefined> {
  return (await client.pullFull("w")).data[0];
}

/** Gradients whose sums and quarters are exact, unlike for each trainer and step. */
function gradientOf(trainer: number, step: number): Float32Array {
  return Float32Array.from(
    { length: ELEMENTS },
    (_, i) => (((i * 7 + trainer * 13 + step * 29) % 64) - 31) / 8,
  );
}

test("four trainers in step compute what one does with the mean of their gradients", async () => {
  const optimizers = {
    sgd: { optimizer: "sgd", learningRate: 0.25 },
    momentum: { optimizer: { name: "momentum", momentum: 0.9 }, learningRate: 0.1 },
    adam: { optimizer: "adam", learningRate: 0.01, clipValue: 3 },
  } as const;
  const names = Object.keys(optimizers) as (keyof typeof optimizers)[];
  const initialize = async (client: Client): Promise<void> => {
    await client.beginInit();
    for (const name of names) await client.initParam(name, all(0.5), optimizers[name]);
    await client.finishInit();
  };
  const job = await startJob({ mode: "sync", trainers: 4 });
  const single = await startJob("async");
  await Promise.all([job.host(), job.host(), single.host()]);
  const team = await Promise.all([0, 1, 2, 3].map((i) => job.trainer(`t-${i}`)));
  const one = await single.trainer("one");
  await Promise.all([initialize(team[0] as Client), initialize(one)]);
  for (let step = 1; step <= 6; step++) {
    const gradients = team.map((_, i) =>
      gradientOf(i, step).map((x) => Math.max(-3, Math.min(3, x))),
    );
    const mean = all(0).map((_, at) => gradients.reduce((sum, g) => sum + (g[at] ?? 0), 0) / 4);
    await one.sendGrads(Object.fromEntries(names.map((name) => [name, mean])));
    const expected = await one.getParams(names);
    const pulled = await Promise.all(
      team.map(async (client, i) => {
        const gradient = gradients[i] as Float32Array;
        const sent = await client.sendGrads(
          Object.fromEntries(names.map((name) => [name, gradient])),
        );
        expect(sent.lateBlocks).toBe(0);
        return await client.getParams(names);
      }),
    );
    for (const tensors of pulled) expect(tensors).toEqual(expected);
  }
  const { shards, synchronization, members } = await control(job, "hosts", {});
  expect(synchronization).toMatchObject({ mode: "sync", trainers: 4 });
  expect(members).toMatchObject({ started: true, trainers: ["t-0", "t-1", "t-2", "t-3"] });
  for (const shard of shards as Fields[]) {
    expect(shard).toMatchObject({ steps: { closed: 6, members: 4 } });
  }
});

describe("a step of which a trainer dies", () => {
  test("closes after its lease without it, and keeps what it has sent", async () => {
    const job = await startJob({ mode: "sync", trainers: 3, reduce: "sum" }, MORTAL_LEASE_MS);
    await job.host();
    const { client, shard } = await ready(job);
    const [a, b, c] = (await enter(job, "a", "b", "c")) as [StepTrainer, StepTrainer, StepTrainer];
    await c.gradient(shard, "w", 1, all(4));
    await c.kill();
    for (const trainer of [a, b]) {
      expect(await trainer.gradient(shard, "w", 1, all(1))).toMatchObject({ version: 1 });
      await trainer.clock(1);
    }
    // Nobody has noticed yet: the step waits, and says for whom.
    await expect(a.peek(shard, 1)).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringContaining('"c"'),
      details: { waitingFor: ["c"] },
    });
    expect(await firstOf(client)).toBe(1);
    expect(await a.closed(shard, 1)).toMatchObject({ step: 1, waitingFor: ["a", "b"] });
    expect(await firstOf(client)).toBe(-5);
    // It comes back, and takes part again.
    const [again] = (await enter(job, "c")) as [StepTrainer];
    expect((await again.closed(shard, 0)).step).toBe(1);
    for (const trainer of [a, b, again]) {
      await trainer.gradient(shard, "w", 2, all(1));
      await trainer.clock(2);
    }
    await a.closed(shard, 2);
    expect(await firstOf(client)).toBe(-8);
  });

  test("closes at once when it leaves, exits, or comes back as a new process", async () => {
    const job = await startJob({ mode: "sync", trainers: 2 });
    await job.host();
    const { client, shard } = await ready(job);
    const [a, b] = (await enter(job, "a", "b")) as [StepTrainer, StepTrainer];
    await a.clock(1);
    await b.lifecycle("exit");
    await a.closed(shard, 1);
    expect(await b.gradient(shard, "w", 2, all(1))).toMatchObject({ code: "NOT_MEMBER" });
    expect(await b.clock(2, shard)).toMatchObject([{ code: "NOT_MEMBER" }]);
    await b.enter();
    await a.clock(2);
    const [next] = (await enter(job, "b")) as [StepTrainer];
    // The new process has taken the old one's place, at the step that has closed.
    await next.closed(shard, 2);
    await a.clock(3);
    await next.lifecycle("leave");
    await a.closed(shard, 3);
    expect(await firstOf(client)).toBe(1);
    // Alone it goes on; without it nothing closes, and it is told so.
    await a.lifecycle("exit");
    await expect(a.peek(shard, 4)).rejects.toMatchObject({ code: "NOT_MEMBER" });
  });
});

test("nothing closes before enough trainers have entered; a late one begins where the others are", async () => {
  const job = await startJob({ mode: "sync", trainers: 2 });
  await job.host();
  const { client, shard } = await ready(job);
  const [a] = (await enter(job, "a")) as [StepTrainer];
  await a.gradient(shard, "w", 1, all(2));
  await a.clock(1);
  await expect(a.peek(shard, 1)).rejects.toMatchObject({
    message: expect.stringContaining("1 of 2 trainers have entered"),
  });
  expect(await a.gradient(shard, "w", 2, all(2))).toMatchObject({ code: "EARLY" });
  expect(await a.gradient(shard, "w", 1, all(2))).toMatchObject({ code: "LATE" });
  const [b] = (await enter(job, "b")) as [StepTrainer];
  await b.clock(1);
  await a.closed(shard, 1);
  // The mean of two: the other's gradient was zero.
  expect(await firstOf(client)).toBe(0);
  const [late] = (await enter(job, "late")) as [StepTrainer];
  expect(await late.closed(shard, 0)).toMatchObject({ step: 1, waitingFor: ["a", "b", "late"] });
  expect(await late.gradient(shard, "w", 1, all(9))).toMatchObject({ code: "LATE" });
  for (const trainer of [a, b]) {
    await trainer.gradient(shard, "w", 2, all(3));
    await trainer.clock(2);
  }
  await expect(a.peek(shard, 2)).rejects.toMatchObject({ details: { waitingFor: ["late"] } });
  await late.gradient(shard, "w", 2, all(3));
  await late.clock(2);
  await a.closed(shard, 2);
  expect(await firstOf(client)).toBe(-3);
});

test("with a backup the last gradient of a step comes too late", async () => {
  const job = await startJob({ mode: "sync", trainers: 2, backups: 1 });
  await job.host();
  const { client, shard } = await ready(job);
  const [a, b, c] = (await enter(job, "a", "b", "c")) as [StepTrainer, StepTrainer, StepTrainer];
  for (const [trainer, value] of [
    [a, 2],
    [b, 4],
  ] as const) {
    await trainer.gradient(shard, "w", 1, all(value));
    await trainer.clock(1);
  }
  await c.closed(shard, 1);
  expect(await c.gradient(shard, "w", 1, all(100))).toMatchObject({
    code: "LATE",
    message: expect.stringContaining("expected the open one, 2; received 1"),
  });
  expect(await firstOf(client)).toBe(-2);
  // Who was late goes on with the others.
  await c.clock(1);
  for (const trainer of [c, a]) {
    await trainer.gradient(shard, "w", 2, all(1));
    await trainer.clock(2);
  }
  await c.closed(shard, 2);
  expect(await firstOf(client)).toBe(-3);
});

test("ssp applies gradients at once and holds a fast trainer back until the slow one moves", async () => {
  const job = await startJob({ mode: "ssp", trainers: 2, staleness: 1 });
  await job.host();
  const { client } = await ready(job);
  const [fast, slow] = await Promise.all([job.trainer("fast"), job.trainer("slow")]);
  await Promise.all([fast.sendGrads({ w: all(1) }), slow.sendGrads({ w: all(1) })]);
  await fast.getParams(["w"]);
  await fast.sendGrads({ w: all(1) });
  // One ahead is within its bounds.
  expect((await fast.getParams(["w"]))[0]?.data[0]).toBe(-2);
  await fast.sendGrads({ w: all(1) });
  expect(await firstOf(client)).toBe(-3);
  const waiting = await atDeadline("TIMEOUT", (timeoutMs) => fast.getParams(["w"], { timeoutMs }));
  expect(waiting).toMatchObject({ code: "TIMEOUT" });
  const held = fast.getParams(["w"]);
  await slow.sendGrads({ w: all(1) });
  expect((await held)[0]?.data[0]).toBe(-4);
});

test("a host that takes over in the middle of a step ends it as the dead host would have", async () => {
  const job = await startJob({ mode: "sync", trainers: 3 });
  const first = await job.host({ id: "first" });
  const { client, shard } = await ready(job);
  const [a, b, c] = (await enter(job, "a", "b", "c")) as [StepTrainer, StepTrainer, StepTrainer];
  for (const trainer of [a, b, c]) {
    await trainer.gradient(shard, "w", 1, all(3));
    await trainer.clock(1);
  }
  // Step 2 is open in the snapshot, with one gradient; two records more come after it.
  await a.gradient(shard, "w", 2, all(3));
  await a.clock(2);
  await snapshotAll(job);
  await b.gradient(shard, "w", 2, all(6));
  const last = await c.send(shard, "w", 2, all(9));
  await job.crash(first);
  await job.host({ id: "second" });
  expect(await c.outcome(shard, last)).toMatchObject({ version: 2 });
  expect(await b.gradient(shard, "w", 2, all(6))).toMatchObject({ code: "LATE" });
  await expect(a.peek(shard, 2)).rejects.toMatchObject({ details: { waitingFor: ["b", "c"] } });
  await Promise.all([b.clock(2), c.clock(2)]);
  await a.closed(shard, 2);
  expect(await firstOf(client)).toBe(1 - 3 - 6);
  await using archive = await Archive.open(job.broker.url, job.job);
  const folded = await archive.fold(shard);
  expect(folded.block("w", 0)?.values()).toEqual(
    new Uint8Array((await client.pullFull("w")).data.buffer),
  );
  // The snapshot in the middle of the step, folded on, is the same state.
  const [manifest] = (await archive.manifests(shard)).slice(-1);
  if (manifest === undefined) throw new Error("no manifest");
  const restored = await archive.restore(shard, manifest.manifest);
  for (const record of await archive.records(shard)) {
    if (record.seq > restored.seq) restored.apply(record);
  }
  expect(restored.digest()).toBe(folded.digest());
});

test("trainers keep step while the hosts under them die", async () => {
  const job = await startJob({ mode: "sync", trainers: 3 });
  const first = await job.host({ id: "first" });
  const { client } = await ready(job);
  const team = await Promise.all([0, 1, 2].map((i) => job.trainer(`t-${i}`)));
  const STEPS = 12;
  let isHalfway: () => void = () => undefined;
  const halfway = new Promise<void>((resolve) => {
    isHalfway = resolve;
  });
  const training = Promise.all(
    team.map(async (trainer, i) => {
      for (let step = 1; step <= STEPS; step++) {
        // The mean of 3, 6 and 9 is 6.
        await trainer.sendGrads({ w: all(3 * (i + 1)) });
        if (i === 0 && step === STEPS / 2) isHalfway();
        const [tensor] = await trainer.getParams(["w"]);
        expect(tensor?.data[0], `step ${step} of ${i}`).toBe(1 - 6 * step);
      }
    }),
  );
  await halfway;
  await job.crash(first);
  await job.host({ id: "second" });
  await training;
  expect(await firstOf(client)).toBe(1 - 6 * STEPS);
});

describe("a trainer that is a member anew without its knowledge stops nobody", () => {
  /** Two trainers; "a" has ended step 2, which only "b" has not, and has then lost its place and got another. */
  async function renewed(): Promise<[Client, Client]> {
    const job = await startJob({ mode: "sync", trainers: 2 });
    await job.host();
    await ready(job);
    const [a, b] = await Promise.all([job.trainer("a"), job.trainer("b")]);
    await Promise.all([a, b].map((each) => each.sendGrads({ w: all(1) })));
    await a.sendGrads({ w: all(1) });
    const raw = await connect({ servers: job.broker.url });
    // As if its lease had been lost for a moment, and a copy of its request to enter came only now.
    for (const verb of ["exit", "enter"] as const) {
      await askRaw(raw, "a", verb, { session: a.session });
    }
    await raw.close();
    await b.sendGrads({ w: all(1) });
    return [a, b];
  }

  /** Both have ended step 3. */
  async function expectThird(a: Client, b: Client): Promise<void> {
    for (const each of [a, b]) expect(await firstOf(each)).toBe(1 - 3);
  }

  test("if it reads", async () => {
    const [a, b] = await renewed();
    // The second step is still open.
    expect(await firstOf(a)).toBe(0);
    await Promise.all([a.sendGrads({ w: all(1) }), b.sendGrads({ w: all(1) })]);
    await expectThird(a, b);
  });

  test("if it sends its next gradient", async () => {
    const [a, b] = await renewed();
    await Promise.all([a.sendGrads({ w: all(1) }), b.sendGrads({ w: all(1) })]);
    await expectThird(a, b);
  });
});

test("a journal that missed a change of members is told it by the host that serves its shard", async () => {
  const job = await startJob({ mode: "sync", trainers: 2 });
  const host = await job.host();
  const { shard } = await ready(job);
  const [a] = (await enter(job, "a", "b")) as [StepTrainer];
  await host.stop();
  // As by a host that wrote the record and died before it told the journals.
  const connection = await connect({ servers: job.broker.url });
  const bucket = new JobSubjects(job.job).bucket();
  const records = await openBucket({ connection, bucket, storage: "file" });
  const stored = await records.read("members");
  const value = stored?.value as { members: unknown[] };
  const alone = { ...value, revision: 3, members: value.members.slice(0, 1) };
  await records.update("members", alone, stored?.revision ?? 0);
  await connection.close();
  await a.sendClock(shard, 1);
  await job.host();
  expect(await a.closed(shard, 1)).toMatchObject({ step: 1, waitingFor: ["a"] });
});

test("a host that comes with another synchronization is refused, one with none joins", async () => {
  const job = await startJob({ mode: "sync", trainers: 2, backups: 1 });
  await job.host();
  const other = job.spawnHost({ synchronization: { mode: "sync", trainers: 3 } });
  const { error } = await other.line(({ type }) => type === "refused");
  expect(error).toMatchObject({
    code: "JOB_EXISTS",
    message: expect.stringMatching(/sync of 2 trainers and 1 backup, mean; received .* 3 trainers/),
  });
  const host = job.spawnHost({ synchronization: undefined as never });
  const { settings } = await host.line(({ type }) => type === "started");
  expect(settings).toMatchObject({ synchronization: { mode: "sync", trainers: 2, backups: 1 } });
});
