// Proves that the C library reads and initializes many parameters with few messages, and that this keeps
// every promise while a host is killed and the broker crashes: no update is lost or applied twice, and no read
// is torn or older than an earlier one. Under address and undefined behaviour sanitizers.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningProgram, runProgram } from "../../c/running-program.ts";
import { startJob, startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import type { TestJob } from "../../support/host.ts";
import { Traffic } from "../../support/traffic.ts";

const SHARDS = 4;

let library: BuiltLibrary;
let program: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.program("many");
});

afterAll(async () => {
  await library?.remove();
});

/** Arguments of the trainer, which adds `rounds` to every element. */
function args(
  { broker, job }: TestJob,
  work: { parameters: number; elements: number; rounds: number; trainer?: string },
): string[] {
  const { trainer = "c", parameters, elements, rounds } = work;
  return [broker.url, job, trainer, ...[parameters, elements, rounds].map(String)];
}

/** Every element was changed in every round of every trainer, once. */
async function expectExactlyOnce(of: TestJob, parameters: number, rounds: number): Promise<void> {
  const client = await of.trainer("reader");
  const names = Array.from({ length: parameters }, (_, i) => `p${i}`);
  for (const { data } of await client.getParams(names)) {
    expect(new Set(data as Float32Array)).toEqual(new Set([rounds]));
  }
}

test("initializes, changes and reads all with few messages", async () => {
  const job = await startServedJob({ shards: SHARDS });
  await using traffic = await Traffic.listen(job.broker.url, "ps.j.>");
  const [parameters, rounds] = [1000, 2];
  await runProgram(program, args(job, { parameters, elements: 16, rounds }));
  const passed = (await traffic.take()).map(({ subject }) => subject);
  const count = (pattern: RegExp) => passed.filter((subject) => pattern.test(subject)).length;
  // A busy host answers late, and is asked again; one message for each parameter would be 1,000.
  expect(count(/\.lifecycle\.c\.declare$/)).toBeLessThan(parameters / 10);
  expect(count(/\.read$/)).toBeGreaterThan(0);
  expect(count(/\.(read|pull)$/)).toBeLessThan(parameters / 10);
  expect(count(/\.log\.\d+\.trainer\.c\./)).toBeLessThan(parameters / 10);
  await expectExactlyOnce(job, parameters, rounds);
});

/** Parameters of 64 KiB: each reply of a shard comes in pieces. */
const LARGE = { parameters: 128, elements: 16 * 1024, rounds: 16 };

async function startLarge(job: TestJob): Promise<RunningProgram> {
  const running = startProgram(program, args(job, LARGE));
  await running.lines("round", 3);
  return running;
}

test("a host is killed while it answers", async () => {
  const job = await startJob({ shards: SHARDS });
  const host = await job.host();
  const running = await startLarge(job);
  await job.crash(host);
  await job.host();
  await running.end();
  await expectExactlyOnce(job, LARGE.parameters, LARGE.rounds);
});

test("the broker crashes", async () => {
  const job = await startServedJob({ shards: SHARDS });
  const running = await startLarge(job);
  await job.broker.kill();
  await job.broker.start();
  await running.end();
  await expectExactlyOnce(job, LARGE.parameters, LARGE.rounds);
});
