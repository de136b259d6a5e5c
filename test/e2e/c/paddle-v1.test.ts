// Proves what revision 1 of the Paddle client library does against a real broker and host, under the
// sanitizers: PaddlePaddle's own test with values, lengths that are declared or known from the job,
// trainers that wait and take over, and that everything done wrongly is refused with its reason.
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
  const variables = { PSERVER_URL: job.broker.url, PSERVER_JOB: job.job };
  return await runWith(await programs.program(name), args, variables);
}

test("runs PaddlePaddle's own test with values", { timeout: RUN_MS }, async () => {
  await runWithHost("v1-scenario");
  expect((await readdir(models)).join()).toContain("v1-scenario");
});

test("refuses everything that is wrong", { timeout: RUN_MS }, async () => {
  const { errors } = await runWithHost("v1-misuse");
  // Each kind of failure is printed once, not once per call.
  expect(errors.match(/: BAD_LENGTH: /g)).toHaveLength(1);
});

test("lets others wait until one has initialized", { timeout: RUN_MS }, async () => {
  expect(await runWithHost("v1-waiting")).toEqual({ output: "", errors: "" });
});

test("selects another when the selected one dies", { timeout: RUN_MS }, async () => {
  await runWithHost("v1-waiting", "dies");
});
