// Proves that batches of a trainer on the C library keep every promise on a real broker: each is applied once
// while hosts are paused and killed, and trainers in C and TypeScript keep step with them.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import type { RunningProgram } from "../../c/running-program.ts";
import { startJob, startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import type { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { Archive } from "../host/journal-fold.ts";

const SHARDS = 2;
/** More than the header of one batch has room for. */
const MANY = 2_600;
const SUBJECTS = new JobSubjects("j");

let library: BuiltLibrary;
let program: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.program("batches");
});

afterAll(async () => {
  await library?.remove();
});

/** A trainer that adds its number in each of its steps, as test/c/programs/batches.c says. */
class Adder {
  readonly #running: RunningProgram;
  #steps = 0;

  constructor(of: TestJob, trainer: string, number: number, parameters: number, steps: number) {
    const { broker, job } = of;
    const args = [broker.url, job, trainer, number, parameters, steps].map(String);
    this.#running = startProgram(program, args);
  }

  async joined(): Promise<void> {
    await this.#running.lines("ready", 1);
  }

  /** Lets it make the next step, and waits for its end. */
  async step(): Promise<void> {
    this.#running.say("on");
    this.#steps += 1;
    await this.#running.lines("step", this.#steps);
  }

  async end(): Promise<void> {
    this.#running.say("on");
    await this.#running.end();
  }
}

function namesOf(parameters: number): readonly string[] {
  return Array.from({ length: parameters }, (_, i) => `p.${i}`);
}

async function initialize(client: Client, parameters: number): Promise<void> {
  await client.beginInit();
  const zeros = new Float32Array(4);
  const small = new Map(namesOf(parameters).map((name) => [name, zeros]));
  await client.initParams(small, { learningRate: 1 });
  const table = { dtype: "float32", shape: [9, 2], data: new Float32Array(18) } as const;
  await client.initParam("table", table, { learningRate: 1, sparse: true });
  await client.initParam("counts", new BigInt64Array(2), { optimizer: "none" });
  await client.finishInit();
}

/** What {@link Adder} sends in a step. */
async function stepInTypeScript(client: Client, number: number, parameters: number): Promise<void> {
  const values = new Float32Array(4).fill(-number);
  const named = {
    dtype: "float32",
    shape: [4, 2],
    data: new Float32Array(8).fill(-number),
  } as const;
  await client.sendGrads({
    ...Object.fromEntries(namesOf(parameters).map((name) => [name, values])),
    table: { rows: [5, 0, 5, 7], values: named },
    counts: BigInt64Array.of(BigInt(number), BigInt(number)),
  });
}

/** Expects what the numbers of all steps come to. */
async function expectSum(client: Client, parameters: number, sum: number): Promise<void> {
  const [table, counts, ...small] = await client.getParams([
    "table",
    "counts",
    ...namesOf(parameters),
  ]);
  for (const { data } of small) expect(data).toEqual(new Float32Array(4).fill(sum));
  const rows = new Float32Array(18);
  rows
    .fill(sum, 0, 2)
    .fill(2 * sum, 10, 12)
    .fill(sum, 14, 16);
  expect(table?.data).toEqual(rows);
  expect(counts?.data).toEqual(BigInt64Array.of(BigInt(sum), BigInt(sum)));
}

/** How many records of a trainer a job's journals hold: batches and others of gradients. */
async function recordsOf(
  job: TestJob,
  trainer: string,
): Promise<{ batches: number; single: number }> {
  await using archive = await Archive.open(job.broker.url, job.job);
  let batches = 0;
  let single = 0;
  for (let shard = 0; shard < SHARDS; shard++) {
    const subjects = (await archive.records(shard)).map(({ subject }) => subject);
    batches += subjects.filter((subject) => subject === SUBJECTS.batch(shard, trainer)).length;
    const push = `.trainer.${trainer}.push.`;
    single += subjects.filter((subject) => subject.includes(push)).length;
  }
  return { batches, single };
}

test("each is applied once while a host is paused, and one is killed", async () => {
  const job = await startJob({ shards: SHARDS, leaseMs: QUICK_LEASE_MS });
  const paused = await job.host();
  const reader = await job.trainer("reader");
  await initialize(reader, MANY);
  const adder = new Adder(job, "c", 3, MANY, 8);
  await adder.joined();
  await adder.step();
  await freeze(paused.pid);
  const other = job.spawnHost();
  await adder.step();
  thaw(paused.pid);
  await adder.step();
  // The ids of the two decide which of them has which shard now: one may have none.
  await (other.serving.includes(0) ? other : paused).kill();
  for (let step = 0; step < 5; step++) await adder.step();
  await adder.end();
  await expectSum(reader, MANY, 8 * 3);
  const { batches, single } = await recordsOf(job, "c");
  expect(batches).toBeGreaterThanOrEqual(8 * 2);
  expect(single).toBe(0);
});

test("trainers in C and TypeScript keep step with them", async () => {
  const synchronization = { mode: "sync", trainers: 2, backups: 0, reduce: "sum" } as const;
  const job = await startServedJob({ shards: SHARDS, synchronization, leaseMs: LASTING_LEASE_MS });
  const client = await job.trainer("ts");
  await initialize(client, 40);
  const adder = new Adder(job, "c", 2, 40, 4);
  await adder.joined();
  for (let step = 0; step < 4; step++) {
    await Promise.all([adder.step(), stepInTypeScript(client, 5, 40)]);
  }
  await Promise.all([adder.end(), client.exitSteps()]);
  await expectSum(await job.trainer("reader"), 40, 4 * (2 + 5));
  // Those of integers, of one block, go alone.
  const { batches, single } = await recordsOf(job, "c");
  expect(batches % 4).toBe(0);
  expect(batches).toBeGreaterThan(0);
  expect(single).toBe(4);
});
