// Proves what revision 2 of the Paddle client library does against a real broker and host, under the
// sanitizers: PaddlePaddle's own test with values, configurations for all parameters, trainers that
// wait and take over, everything done wrongly refused with its reason, and calls whose server goes.
import { expect, test } from "vitest";
import { jobVariables, ServedPrograms } from "../../c/paddle/served-programs.ts";
import { startJob, startProgram, startServedJob } from "../../c/test-job.ts";

const programs = ServedPrograms.forThisFile();

test("runs PaddlePaddle's own test with values", async () => {
  await programs.run("v2-scenario");
  expect((await programs.saved()).join()).toContain("v2-scenario");
});

test("refuses everything that is wrong", async () => {
  const { errors } = await programs.run("v2-misuse");
  // Each kind of failure is printed once, not once per call.
  expect(errors.match(/: BAD_LENGTH: /g)).toHaveLength(1);
});

test("lets others wait until one has initialized", async () => {
  expect(await programs.run("v2-waiting")).toEqual({ output: "", errors: "" });
});

test("selects another when the selected one dies", async () => {
  await programs.run("v2-waiting", "dies");
});

test("continues when a host is killed and replaced", async () => {
  const job = await startJob();
  const host = await job.host();
  const path = await programs.program("v2-server-gone");
  const program = startProgram(path, [], jobVariables(job));
  await program.lines("round", 3);
  await job.crash(host);
  const last = Number(program.text("round").split(" ")[1]);
  await job.host();
  await program.lines(`round ${last + 50}`, 1);
  expect(program.text("send") + program.text("get")).toBe("");
});

test("ends calls whose broker has gone", async () => {
  const job = await startServedJob();
  const path = await programs.program("v2-server-gone");
  const variables = { ...jobVariables(job), PSERVER_TIMEOUT_MS: "4000" };
  const program = startProgram(path, [], variables);
  await program.lines("round", 3);
  await job.broker.kill();
  await program.end();
  expect(program.text("send")).toMatch(/: (?:TIMEOUT|NO_BROKER|OUTCOME_UNKNOWN): /);
  expect(program.text("get")).toMatch(/: (?:TIMEOUT|NO_BROKER): /);
  expect(program.text("save")).toMatch(/: (?:TIMEOUT|NO_BROKER): /);
  expect(program.text("new")).toMatch(/: NO_BROKER: /);
});
