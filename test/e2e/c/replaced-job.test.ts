// Proves through a real broker and hosts that a C trainer whose broker came back with an empty store, on which the job
// was begun anew meanwhile, is told so and changes nothing in the new job, though that knows its parameter and has more
// records than the trainer has seen.
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startJob, startProgram } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { MORTAL_LEASE_MS } from "../../support/limits.ts";

let library: BuiltLibrary;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
});

afterAll(() => library?.remove());

test("a trainer of a former job is told that it was made anew, and changes nothing", async () => {
  const job = await startJob({ shards: 1, workers: 1, leaseMs: MORTAL_LEASE_MS });
  const former = await job.host();
  const path = await library.program("slow-link");
  const old = startProgram(path, [job.broker.url, job.job, "old", "1", "0"]);
  expect(await old.ask("init w 1")).toBe("OK session 1");
  expect(await old.ask("finish")).toBe("OK session 1");

  await job.broker.kill();
  await rm(job.broker.storeDir, { recursive: true });
  await job.broker.start();
  await former.exited;
  await job.host();
  const fresh = await job.trainer("fresh");
  expect(await fresh.beginInit()).toBe(true);
  await fresh.initParam("w", Float32Array.of(7), { learningRate: 1 });
  await fresh.finishInit();
  for (let i = 0; i < 9; i++) await fresh.pushFull("w", Float32Array.of(1), 1, 1);

  expect(await old.ask("push w 100")).toMatch(/^JOB_REPLACED /);
  expect(await old.ask("pull w")).toMatch(/^JOB_REPLACED /);
  expect((await fresh.pullFull("w")).data).toEqual(Float32Array.of(16));
});
