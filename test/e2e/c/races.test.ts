// Proves that the threads of the C library do not race, by the thread sanitizer: several threads of
// the caller on one client, beside those of cnats and of the lease, while a host is replaced, while the
// broker crashes, while clients are closed, and in a job that keeps step; and those of the Paddle client
// libraries. What cnats does by itself is not watched: it was compiled without the sanitizer. Every other
// test of the Paddle libraries runs under it, too, with SANITIZE=thread.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { PaddlePrograms, runWith } from "../../c/paddle/programs.ts";
import { BuiltLibrary, RunningProgram, runProgram } from "../../c/toolchain.ts";
import { TestJob } from "../../support/host.ts";

const BUILD_MS = 240_000;
const RUN_MS = 120_000;
const ROUNDS = 8;

/** A program in which threads have raced ends with an error, after telling where. */
const THREADS = ["-O1", "-g", "-fsanitize=thread", "-fno-omit-frame-pointer"];

let library: BuiltLibrary;
let paddle: PaddlePrograms;
let job: TestJob | undefined;
let running: RunningProgram | undefined;

beforeAll(async () => {
  library = await BuiltLibrary.build(THREADS);
  paddle = await PaddlePrograms.build("thread");
}, BUILD_MS);

afterEach(async () => {
  running?.kill();
  running = undefined;
  await job?.remove();
  job = undefined;
});

afterAll(async () => {
  await library?.remove();
  await paddle?.remove();
});

/** Starts two threads that add one, in rounds. */
async function train({ broker, job: name }: TestJob): Promise<RunningProgram> {
  const program = await library.program("train");
  running = new RunningProgram(program, [broker.url, name, "c", `${ROUNDS}`, "2"]);
  return running;
}

async function expectExactlyOnce(of: TestJob): Promise<void> {
  const client = await of.trainer("reader");
  expect((await client.getParams(["steps"]))[0]?.data).toEqual(Float32Array.of(2 * ROUNDS));
}

test("while a host is replaced", { timeout: RUN_MS }, async () => {
  job = await TestJob.start();
  const host = await job.host();
  const program = await train(job);
  await program.lines("round", 4);
  await host.kill();
  await job.host();
  await program.end();
  await expectExactlyOnce(job);
});

test("while the broker crashes", { timeout: RUN_MS }, async () => {
  job = await TestJob.start();
  await job.host();
  const program = await train(job);
  await program.lines("round", 4);
  await job.broker.kill();
  await job.broker.start();
  await program.end();
  await expectExactlyOnce(job);
});

test("while clients are closed", { timeout: RUN_MS }, async () => {
  job = await TestJob.start();
  await job.host();
  await runProgram(await library.program("close"), [job.broker.url, job.job, "3"]);
});

test("while trainers keep step", { timeout: RUN_MS }, async () => {
  const synchronization = { mode: "sync", trainers: 2, backups: 0, reduce: "mean" } as const;
  job = await TestJob.start({ synchronization });
  await job.host();
  const program = await library.program("steps");
  const args = [job.broker.url, job.job];
  await Promise.all(["a", "b"].map((trainer) => runProgram(program, [...args, trainer, "7"])));
});

test.each([
  ["v1-waiting", []],
  ["v2-waiting", ["dies"]],
  ["v3-waiting", ["restart"]],
  ["v3-waiting", ["release"]],
])("in %s %s", { timeout: RUN_MS }, async (name, what) => {
  job = await TestJob.start();
  await job.host();
  const variables = { PSERVER_URL: job.broker.url, PSERVER_JOB: job.job };
  const address = name.startsWith("v3") ? [job.broker.url] : [];
  await runWith(await paddle.program(name), [...what, ...address], variables);
});
