// Proves what revision 2 of the Paddle client library does against a real broker and host, under the
// sanitizers: PaddlePaddle's own test with values, configurations for all parameters, trainers that
// wait and take over, everything done wrongly refused with its reason, and calls whose server goes.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { PaddlePrograms, type ProgramOutput, runWith } from "../../c/paddle/programs.ts";
import { RunningProgram } from "../../c/toolchain.ts";
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
  await runWithHost("v2-scenario");
  expect((await readdir(models)).join()).toContain("v2-scenario");
});

test("refuses everything that is wrong", { timeout: RUN_MS }, async () => {
  const { errors } = await runWithHost("v2-misuse");
  // Each kind of failure is printed once, not once per call.
  expect(errors.match(/: BAD_LENGTH: /g)).toHaveLength(1);
});

test("lets others wait until one has initialized", { timeout: RUN_MS }, async () => {
  expect(await runWithHost("v2-waiting")).toEqual({ output: "", errors: "" });
});

test("selects another when the selected one dies", { timeout: RUN_MS }, async () => {
  await runWithHost("v2-waiting", "dies");
});

test("goes on when a host is killed and replaced", { timeout: RUN_MS }, async () => {
  job = await TestJob.start();
  const host = await job.host();
  const variables = { PSERVER_URL: job.broker.url, PSERVER_JOB: job.job };
  const program = new RunningProgram(await programs.program("v2-server-gone"), [], variables);
  try {
    await program.lines("round", 3);
    await host.kill();
    const last = Number(program.text("round").split(" ")[1]);
    await job.host();
    await program.lines(`round ${last + 50}`, 1);
    expect(program.text("send") + program.text("get")).toBe("");
  } finally {
    program.kill();
  }
});

test("ends calls whose broker has gone", { timeout: RUN_MS }, async () => {
  job = await TestJob.start();
  await job.host();
  const variables = {
    PSERVER_URL: job.broker.url,
    PSERVER_JOB: job.job,
    PSERVER_TIMEOUT_MS: "4000",
  };
  const program = new RunningProgram(await programs.program("v2-server-gone"), [], variables);
  try {
    await program.lines("round", 3);
    await job.broker.kill();
    await program.end();
    expect(program.text("send")).toMatch(/: (?:TIMEOUT|NO_BROKER|OUTCOME_UNKNOWN): /);
    expect(program.text("get")).toMatch(/: (?:TIMEOUT|NO_BROKER): /);
    expect(program.text("save")).toMatch(/: (?:TIMEOUT|NO_BROKER): /);
    expect(program.text("new")).toMatch(/: NO_BROKER: /);
  } finally {
    program.kill();
  }
});
