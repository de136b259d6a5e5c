// Proves that the C library does what its header says against real hosts and a real broker, under
// address and undefined behaviour sanitizers: every call as it is meant and wrongly; updates exactly
// once while a host is killed and replaced and while the broker crashes; several threads on one
// client; steps of a synchronized job; C and TypeScript trainers on one job.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningProgram, runProgram } from "../../c/running-program.ts";
import { startJob, startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { expectRounds } from "../../c/trained-rounds.ts";
import type { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";

let library: BuiltLibrary;
let calls: string;
let train: string;
let steps: string;
let models: string;

beforeAll(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-models-"));
  library = await BuiltLibrary.build(SANITIZED);
  calls = await library.program("calls");
  train = await library.program("train");
  steps = await library.program("steps");
});

afterAll(async () => {
  await library?.remove();
  await rm(models, { recursive: true, force: true });
});

/** Starts two threads that add one, `rounds` times each. */
function start({ broker, job: name }: TestJob, rounds: number): RunningProgram {
  return startProgram(train, [broker.url, name, "c", `${rounds}`, "2"]);
}

/** Every one of the rounds of two threads was applied once. */
async function expectExactlyOnce(of: TestJob, rounds: number): Promise<void> {
  await expectRounds(await of.trainer("reader"), 2 * rounds);
}

describe("C library", () => {
  test("does every call, and refuses every wrong one by name", async () => {
    const job = await startServedJob({ modelDirectory: models });
    await runProgram(calls, [job.broker.url, job.job]);
  });

  test("applies each update once while a host is replaced", async () => {
    const job = await startJob();
    const host = await job.host();
    const program = start(job, 20);
    await program.lines("round", 6);
    await job.crash(host);
    await job.host();
    await program.end();
    await expectExactlyOnce(job, 20);
  });

  test("applies each update once while the broker crashes", async () => {
    const job = await startServedJob();
    const program = start(job, 20);
    await program.lines("round", 6);
    await job.broker.kill();
    await job.broker.start();
    await program.end();
    await expectExactlyOnce(job, 20);
  });

  test("keeps step with another trainer", async () => {
    const synchronization = { mode: "sync", trainers: 2, backups: 0, reduce: "mean" } as const;
    const job = await startServedJob({ synchronization, leaseMs: LASTING_LEASE_MS });
    const args = [job.broker.url, job.job];
    await Promise.all(["a", "b"].map((trainer) => runProgram(steps, [...args, trainer, "7"])));
  });

  test("trains beside a TypeScript trainer", async () => {
    const job = await startServedJob();
    const program = start(job, 5);
    await program.lines("ready", 1);
    const other = await job.trainer("ts");
    for (let round = 0; round < 5; round++) await other.pushFull("steps", Float32Array.of(1), 1, 1);
    await program.end();
    expect((await other.pullFull("steps")).data).toEqual(Float32Array.of(15));
  });
});
