// Proves rounds of fragments with real hosts and trainers: learners of different speeds contribute and adopt without waiting
// for each other, the round closes with its quorum while one of them is slow, a contribution of many records counts as
// one, hosts die in the middle of rounds, and what trainers have pulled is what the journal folds to, with
// every contribution accounted for.
import { afterEach, describe, expect, test } from "vitest";
import type { Client, ContributionAccount, NamedTensor } from "../../../src/client/index.ts";
import {
  bytesOf,
  type SynchronizationInput,
  shardOfFragment,
} from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";
import { Archive } from "./journal-fold.ts";

const SHARDS = 3;
/** Elements of the large parameter: more than fits into one block, and so into one record. */
const LARGE = 1_200_000;
const SMALL = 300;
/** DiLoCo's own outer rule. */
const NESTEROV = { optimizer: "nesterov", learningRate: 0.7, momentum: 0.9 } as const;
const DESCENT = { optimizer: "sgd", learningRate: 1 } as const;

const jobs: TestJob[] = [];

afterEach(async () => {
  await Promise.all(jobs.splice(0).map((job) => job.remove()));
});

type Diloco = Partial<Extract<SynchronizationInput, { mode: "diloco" }>>;

async function startJob(settings: Diloco): Promise<TestJob> {
  const synchronization = { mode: "diloco", graceCapMs: 50, ...settings } as const;
  const job = await TestJob.start({ shards: SHARDS, synchronization, leaseMs: LASTING_LEASE_MS });
  jobs.push(job);
  return job;
}

/** Initializes a fragment `f` of a large and a small parameter, all 0. */
async function initialize(client: Client, config: object = DESCENT): Promise<void> {
  await client.beginInit();
  const tensors = { large: new Float32Array(LARGE), small: new Float32Array(SMALL) };
  await client.initParams(tensors, { fragment: "f", ...config });
  await client.finishInit();
}

/** The tensors of a contribution, each element this value. */
function all(value: number): Record<string, Float32Array> {
  return {
    large: new Float32Array(LARGE).fill(value),
    small: new Float32Array(SMALL).fill(value),
  };
}

/** The bytes of all tensors; to compare them as arrays takes most of a minute. */
function bytesOfAll(tensors: readonly NamedTensor[]): Buffer {
  return Buffer.concat(tensors.map(({ data }) => bytesOf(data)));
}

const WORK = { steps: 10, tokens: 100 };

/** Checks that every contribution of an account has its fate, but those of open rounds. */
function expectBalanced({ processed, merged, late, dropped }: ContributionAccount, open = 0): void {
  const known = merged.contributions + late.contributions + dropped.contributions;
  expect(processed.contributions).toBe(known + open);
}

test("learners of unequal speed share rounds, and nobody waits for the slow one", async () => {
  const job = await startJob({ quorum: 2 });
  await job.host();
  const [fast, steady, slow] = await Promise.all(
    ["fast", "steady", "slow"].map((id) => job.trainer(id)),
  );
  if (fast === undefined || steady === undefined || slow === undefined)
    throw new Error("no trainer");
  await initialize(fast, NESTEROV);
  await Promise.all([fast, steady, slow].map((each) => each.enterRounds()));
  const begun = await slow.pullFragment("f");
  expect(begun.version).toBe(0);
  const ROUNDS = 4;
  for (let round = 0; round < ROUNDS; round++) {
    const results = await Promise.all(
      [fast, steady].map((each, i) =>
        each.contribute("f", all(i + 1), { base: round, ...WORK, encoding: "bfloat16" }),
      ),
    );
    expect(results).toEqual([{ round: round + 1 }, { round: round + 1 }]);
    const pulled = await Promise.all(
      [fast, steady].map((each) => each.pullFragment("f", { minVersion: round + 1 })),
    );
    expect(pulled.map(({ version }) => version)).toEqual([round + 1, round + 1]);
    const [one, other] = pulled.map(({ tensors }) => bytesOfAll(tensors));
    expect(one?.equals(other ?? Buffer.of())).toBe(true);
  }
  // The slow one is late, and begins again from the present version.
  const late = await slow.contribute("f", all(1), { base: begun.version, ...WORK });
  expect(late).toEqual({ round: undefined });
  const present = await slow.pullFragment("f");
  expect(present.version).toBe(ROUNDS);
  const { versions, account } = await slow.fragments();
  expect([...versions]).toEqual([["f", ROUNDS]]);
  expect(account.dropped).toEqual({ contributions: 1, ...WORK });
  for (const each of [fast, steady, slow]) expectBalanced((await each.fragments()).account);
  // The values are those of the journal.
  await using archive = await Archive.open(job.broker.url, job.job);
  const folded = await archive.fold(shardOfFragment("f", SHARDS));
  const blocks = [...folded.blocks("large")].sort((a, b) => a.index - b.index);
  expect(blocks.length).toBeGreaterThan(1);
  const bytes = Buffer.concat(blocks.map((block) => block.values()));
  const large = present.tensors.filter(({ name }) => name === "large");
  expect(bytesOfAll(large).equals(bytes)).toBe(true);
});

test("a barrier is a full quorum, and a learner that leaves is not waited for", async () => {
  const job = await startJob({ quorum: 3, weights: "uniform", merge: "mean" });
  await job.host();
  const team = await Promise.all(["a", "b", "c"].map((id) => job.trainer(id)));
  const [a, b, c] = team as [Client, Client, Client];
  await initialize(a);
  for (const [i, each] of team.entries())
    await each.contribute("f", all(3 * i), { base: 0, ...WORK });
  const first = await a.pullFragment("f", { minVersion: 1 });
  expect(first.tensors.map(({ data }) => data[0])).toEqual([-3, -3]);
  await a.contribute("f", all(1), { base: 1, ...WORK });
  await b.contribute("f", all(3), { base: 1, ...WORK });
  expect((await a.pullFragment("f")).version).toBe(1);
  await c.close();
  const second = await a.pullFragment("f", { minVersion: 2 });
  expect(second.tensors.map(({ data }) => data[0])).toEqual([-5, -5]);
});

test("some tensors are sent and read as they are, others in an encoding", async () => {
  const job = await startJob({ quorum: 1 });
  await job.host();
  const client = await job.trainer("a");
  await initialize(client);
  const third = Math.fround(1 / 3);
  const mode = { encoding: "int8", exact: ["small"] } as const;
  const mixed = all(third);
  mixed["large"]?.fill(1, 0, 1);
  await client.contribute("f", mixed, { base: 0, ...WORK, ...mode });
  const held = await client.pullFragment("f", { minVersion: 1 });
  const read = await client.pullFragment("f", mode);
  const ofSecond = ({ tensors }: typeof held): (readonly [string, unknown])[] =>
    tensors.map(({ name, data }) => [name, data[1]]);
  const [large] = held.tensors;
  expect(large?.data[1]).not.toBe(-third);
  expect(ofSecond(held)[1]).toEqual(["small", -third]);
  expect(ofSecond(read)).toEqual([
    ["large", expect.closeTo(Number(large?.data[1]), 2)],
    ["small", -third],
  ]);
  await expect(client.pullFragment("f", { exact: ["z"] })).rejects.toMatchObject({
    code: "BAD_VALUE",
  });
});

describe("hosts that die", () => {
  test("lose no contribution and count none twice, in whatever state the round is", async () => {
    const job = await startJob({ quorum: 2, weights: "uniform", merge: "mean" });
    const first = await job.host({ id: "first" });
    const [a, b] = (await Promise.all(["a", "b"].map((id) => job.trainer(id)))) as [Client, Client];
    await initialize(a);
    await Promise.all([a.enterRounds(), b.enterRounds()]);
    await a.contribute("f", all(1), { base: 0, ...WORK });
    await job.crash(first);
    const sent = b.contribute("f", all(3), { base: 0, ...WORK });
    await job.host({ id: "second" });
    expect(await sent).toEqual({ round: 1 });
    const pulled = await a.pullFragment("f", { minVersion: 1 });
    expect(pulled.tensors.map(({ data }) => data[0])).toEqual([-2, -2]);
    // It takes some of the shards over, perhaps this one.
    await job.host({ id: "third" });
    for (const [i, each] of [a, b].entries()) {
      expect(await each.contribute("f", all(2 * i), { base: 1, ...WORK })).toEqual({ round: 2 });
    }
    const last = await b.pullFragment("f", { minVersion: 2 });
    expect(last.tensors.map(({ data }) => data[0])).toEqual([-3, -3]);
    for (const each of [a, b]) {
      const { account } = await each.fragments();
      expect(account.merged).toEqual({ contributions: 2, steps: 20, tokens: 200 });
      expectBalanced(account);
    }
  });
});

test("calls for rounds are refused in a job without, and by name where they are wrong", async () => {
  const job = await startJob({});
  await job.host();
  const client = await job.trainer("a");
  await initialize(client);
  await expect(client.pullFragment("g")).rejects.toMatchObject({ code: "UNKNOWN_PARAMETER" });
  const { small } = all(1) as { small: Float32Array };
  const work = { base: 0, ...WORK };
  await expect(client.contribute("f", { small }, work)).rejects.toMatchObject({
    code: "BAD_LENGTH",
  });
  await expect(client.contribute("g", { small }, work)).rejects.toMatchObject({
    code: "BAD_VALUE",
  });
  await expect(client.sendGrads({ small })).rejects.toMatchObject({ code: "UNSUPPORTED" });
  const future = { ...work, base: 7 };
  await expect(client.contribute("f", all(1), future)).rejects.toMatchObject({ code: "BAD_VALUE" });
  const config = { fragment: "f", ...DESCENT };
  const integers = client.createIfNotAlreadyCreated("i", Int32Array.of(1), config);
  await expect(integers).rejects.toMatchObject({ code: "BAD_CONFIG" });
  const other = await TestJob.start({ shards: SHARDS });
  jobs.push(other);
  await other.host();
  const stranger = await other.trainer("a");
  await expect(stranger.fragments()).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await expect(
    stranger.createIfNotAlreadyCreated("w", Float32Array.of(1), config),
  ).rejects.toMatchObject({
    code: "BAD_CONFIG",
  });
});
