// Proves that C and TypeScript trainers make one team: they train one job at the same time, each with
// a target of its own, come to the mean of the targets, and all read the same bytes; one that dies is
// replaced by one in the other language under its id; and a newer session ends the older one.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import type { RunningProgram } from "../../c/running-program.ts";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import type { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";

const ELEMENTS = 1024 * 1024;
const ROUNDS = 12;
const RATE = 0.1;

let library: BuiltLibrary;
let program: string;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-mixed-"));
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.program("mixed");
});

afterAll(async () => {
  await library?.remove();
  await rm(directory, { recursive: true, force: true });
});

/** A trainer in C, with a target. */
function startInC(of: TestJob, trainer: string, target: number, rounds = ROUNDS): RunningProgram {
  const file = join(directory, trainer);
  const args = [of.broker.url, of.job, trainer, `${target}`, `${rounds}`, file];
  return startProgram(program, args);
}

/** The same in TypeScript, as far as its last round. */
async function train(client: Client, target: number, rounds = ROUNDS): Promise<void> {
  if (await client.beginInit()) {
    await client.initParam("w", new Float32Array(ELEMENTS), { learningRate: RATE });
    await client.initParam("rounds", Float32Array.of(0));
    await client.finishInit();
  }
  for (let round = 0; round < rounds; round++) {
    const { data } = await client.pullFull("w");
    await client.sendGrads({ w: (data as Float32Array).map((value) => value - target) });
    await client.pushFull("rounds", Float32Array.of(1), 1, 1);
  }
  await client.exitSteps();
}

/** What a client reads now. */
async function bytesOf(client: Client): Promise<Buffer> {
  const { data } = await client.pullFull("w");
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** What a trainer in C reads once it is told to. */
async function bytesIn(trainer: RunningProgram, name: string): Promise<Buffer> {
  await trainer.lines("trained", 1);
  trainer.say("read");
  await trainer.end();
  return await readFile(join(directory, name));
}

/** All read the same, and every element is about what the gradients come to. */
function expectEqual(read: readonly Buffer[], expected: number, tolerance: number): void {
  const [first = Buffer.alloc(0), ...others] = read;
  expect(first).toHaveLength(4 * ELEMENTS);
  for (const other of others) expect(other.equals(first)).toBe(true);
  const values = new Float32Array(ELEMENTS);
  Buffer.from(values.buffer).set(first);
  const distances = values.map((value) => Math.abs(value - expected));
  expect(distances.reduce((most, distance) => Math.max(most, distance), 0)).toBeLessThan(tolerance);
}

const SYNC = { mode: "sync", trainers: 4, backups: 0, reduce: "mean" } as const;

describe.each([
  // Whoever ends last pulls to its own target: somewhere between all of them.
  ["async", undefined, 2.5, 1.5],
  // Every step is one tenth of the distance of all: the rest is 0.9 to the number of rounds.
  ["sync", SYNC, 2.5 * (1 - (1 - RATE) ** ROUNDS), 1e-4],
])("%s", (_, synchronization, expected, tolerance) => {
  test("C and TypeScript train together", async () => {
    const job = await startServedJob({
      ...(synchronization === undefined ? {} : { synchronization }),
      leaseMs: LASTING_LEASE_MS,
    });
    const inC = [startInC(job, "c-1", 1), startInC(job, "c-2", 2)];
    const clients = [await job.trainer("ts-3"), await job.trainer("ts-4")];
    await Promise.all(clients.map((client, i) => train(client, 3 + i)));
    await Promise.all(inC.map((trainer) => trainer.lines("trained", 1)));
    const read = [
      ...(await Promise.all(inC.map((trainer, i) => bytesIn(trainer, `c-${i + 1}`)))),
      ...(await Promise.all(clients.map(bytesOf))),
    ];
    expectEqual(read, expected, tolerance);
    const rounds = await clients[0]?.pullFull("rounds");
    expect(rounds?.data).toEqual(Float32Array.of(4 * ROUNDS));
  });
});

test("TypeScript replaces a C trainer that dies", async () => {
  const job = await startServedJob();
  const dying = startInC(job, "worker", 2, 1000);
  const other = startInC(job, "other", 2);
  await dying.lines("round", 3);
  dying.kill();
  const client = await job.trainer("worker");
  await train(client, 2, 2 * ROUNDS);
  expectEqual([await bytesIn(other, "other"), await bytesOf(client)], 2, 0.5);
});

test("a TypeScript session under its id ends a C trainer", async () => {
  const job = await startServedJob();
  const older = startInC(job, "worker", 2, 100_000);
  await older.lines("round", 2);
  const client = await job.trainer("worker");
  await expect(older.end()).rejects.toThrow(/a newer session has joined under this id/);
  await train(client, 2);
  const reader = await job.trainer("reader");
  expectEqual([await bytesOf(client), await bytesOf(reader)], 2, 0.7);
});
