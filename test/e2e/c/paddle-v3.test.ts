// Proves what revision 3 of the Paddle client library does against a real broker and host, under the
// sanitizers: PaddlePaddle's own tests with values, also as the shipped library took them, trainers that
// restart, take over and are released during calls, and everything done wrongly refused.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { PaddlePrograms, type ProgramOutput, runWith } from "../../c/paddle/programs.ts";
import { TestJob } from "../../support/host.ts";

const BUILD_MS = 300_000;
const RUN_MS = 120_000;

let programs: PaddlePrograms;
let models: string;
let job: TestJob | undefined;

beforeAll(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-models-"));
  programs = await PaddlePrograms.build();
}, BUILD_MS);

afterEach(async () => {
  await job?.remove();
  job = undefined;
});

afterAll(async () => {
  await programs?.remove();
  await rm(models, { recursive: true, force: true });
});

/** Runs a program with a new job and a host of it. */
async function runWithHost(name: string, ...args: string[]): Promise<ProgramOutput> {
  job = await TestJob.start({ modelDirectory: models });
  await job.host();
  const variables = { PSERVER_JOB: job.job };
  return await runWith(await programs.program(name), [...args, job.broker.url], variables);
}

test("runs PaddlePaddle's own test with values", { timeout: RUN_MS }, async () => {
  await runWithHost("v3-scenario");
  expect((await readdir(models)).join()).toContain("v3-scenario");
});

test("runs the test of the library that was shipped", { timeout: RUN_MS }, async () => {
  expect(await runWithHost("v3-shipped")).toEqual({ output: "", errors: "" });
});

test("refuses everything that is wrong", { timeout: RUN_MS }, async () => {
  const { errors } = await runWithHost("v3-misuse");
  // Each kind of failure is printed once, not once per call.
  expect(errors.match(/: BAD_LENGTH: /g)).toHaveLength(1);
});

test("tells a trainer that restarts to pull", { timeout: RUN_MS }, async () => {
  await runWithHost("v3-waiting", "restart");
});

test("tells a trainer that waits when it is its turn", { timeout: RUN_MS }, async () => {
  await runWithHost("v3-waiting", "take-over");
});

test("ends the calls of a client that is released", { timeout: RUN_MS }, async () => {
  await runWithHost("v3-waiting", "release");
});
