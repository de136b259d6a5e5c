// Proves what revision 1 of the Paddle client library does against a real broker and host, under the
// sanitizers: PaddlePaddle's own test with values, lengths that are declared or known from the job,
// trainers that wait and take over, and that everything done wrongly is refused with its reason.
import { expect, test } from "vitest";
import { ServedPrograms } from "../../c/paddle/served-programs.ts";

const programs = ServedPrograms.forThisFile();

test("runs PaddlePaddle's own test with values", async () => {
  await programs.run("v1-scenario");
  expect((await programs.saved()).join()).toContain("v1-scenario");
});

test("refuses everything that is wrong", async () => {
  const { errors } = await programs.run("v1-misuse");
  // Each kind of failure is printed once, not once per call.
  expect(errors.match(/: BAD_LENGTH: /g)).toHaveLength(1);
});

test("refuses a parameter of a type that PaddlePaddle has not", async () => {
  await programs.runAfter(async (job) => {
    const client = await job.trainer("a");
    await client.beginInit();
    await client.initParam("half", { dtype: "bfloat16", shape: [2], data: Uint16Array.of(1, 2) });
    await client.finishInit();
  }, "v1-other-type");
});

test("lets others wait until one has initialized", async () => {
  expect(await programs.run("v1-waiting")).toEqual({ output: "", errors: "" });
});

test("selects another when the selected one dies", async () => {
  await programs.run("v1-waiting", "dies");
});
