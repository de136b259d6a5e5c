// Proves what revision 3 of the Paddle client library does against a real broker and host, under the
// sanitizers: PaddlePaddle's own tests with values, also as the shipped library took them, trainers that
// restart, take over and are released during calls, and everything done wrongly refused.
import { expect, test } from "vitest";
import { ServedPrograms } from "../../c/paddle/served-programs.ts";

const programs = ServedPrograms.forThisFile();

test("runs PaddlePaddle's own test with values", async () => {
  await programs.run("v3-scenario");
  expect((await programs.saved()).join()).toContain("v3-scenario");
});

test("runs the test of the library that was shipped", async () => {
  expect(await programs.run("v3-shipped")).toEqual({ output: "", errors: "" });
});

test("tells a trainer that restarts to pull", async () => {
  await programs.run("v3-waiting", "restart");
});

test("tells a trainer that waits when it is its turn", async () => {
  await programs.run("v3-waiting", "take-over");
});

// Both wait ten seconds: for a broker that is not there, and for calls that are still under way.
test.concurrent("refuses everything that is wrong", async () => {
  const { errors } = await programs.run("v3-misuse");
  // Each kind of failure is printed once, not once per call.
  expect(errors.match(/: BAD_LENGTH: /g)).toHaveLength(1);
});

test.concurrent("ends the calls of a client that is released", async () => {
  await programs.run("v3-waiting", "release");
});
