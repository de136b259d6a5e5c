// Proves that the threads of the C library do not race, by the thread sanitizer: several threads of
// the caller on one client, beside those of cnats and of the lease, while a host is replaced, while the
// broker crashes, while clients are closed, and in a job that keeps step; and those of the Paddle client
// libraries. What cnats does by itself is not watched: it was compiled without the sanitizer. Every other
// test of the Paddle libraries runs under it, too, with SANITIZE=thread.
import { afterAll, beforeAll, test } from "vitest";
import { ServedPrograms } from "../../c/paddle/served-programs.ts";
import { type RunningProgram, runProgram } from "../../c/running-program.ts";
import { startJob, startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, sanitizedBy } from "../../c/toolchain.ts";
import { expectRounds } from "../../c/trained-rounds.ts";
import type { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";

const ROUNDS = 8;

/** A program in which threads have raced ends with an error, after telling where. */
const SANITIZER = "thread";

const paddle = ServedPrograms.forThisFile(SANITIZER);
let library: BuiltLibrary;

beforeAll(async () => {
  library = await BuiltLibrary.build(sanitizedBy(SANITIZER));
});

afterAll(async () => {
  await library?.remove();
});

/** Starts two threads that add one, in rounds. */
async function train({ broker, job: name }: TestJob): Promise<RunningProgram> {
  const program = await library.program("train");
  return startProgram(program, [broker.url, name, "c", `${ROUNDS}`, "2"]);
}

async function expectExactlyOnce(of: TestJob): Promise<void> {
  await expectRounds(await of.trainer("reader"), 2 * ROUNDS);
}

test("while a host is replaced", async () => {
  const job = await startJob();
  const host = await job.host();
  const program = await train(job);
  await program.lines("round", 4);
  await job.crash(host);
  await job.host();
  await program.end();
  await expectExactlyOnce(job);
});

test("while the broker crashes", async () => {
  const job = await startServedJob();
  const program = await train(job);
  await program.lines("round", 4);
  await job.broker.kill();
  await job.broker.start();
  await program.end();
  await expectExactlyOnce(job);
});

test("while clients are closed", async () => {
  const job = await startServedJob();
  await runProgram(await library.program("close"), [job.broker.url, job.job, "3"]);
});

test("while two trainers read many parameters", async () => {
  const job = await startServedJob();
  const program = await library.program("many");
  const args = [job.broker.url, job.job];
  await Promise.all(
    ["a", "b"].map((name) => runProgram(program, [...args, name, "200", "64", "5"])),
  );
});

test("while trainers keep step", async () => {
  const synchronization = { mode: "sync", trainers: 2, backups: 0, reduce: "mean" } as const;
  const job = await startServedJob({ synchronization, leaseMs: LASTING_LEASE_MS });
  const program = await library.program("steps");
  const args = [job.broker.url, job.job];
  await Promise.all(["a", "b"].map((trainer) => runProgram(program, [...args, trainer, "7"])));
});

// The last waits ten seconds for calls under way; the others run meanwhile.
test.concurrent.each([
  ["v1-waiting", []],
  ["v2-waiting", ["dies"]],
  ["v3-waiting", ["restart"]],
  ["v3-waiting", ["release"]],
])("in %s %s", async (name, what) => {
  await paddle.run(name, ...what);
});
