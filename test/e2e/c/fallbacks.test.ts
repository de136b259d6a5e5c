// Proves that a trainer with the C library continues after an operator has accepted a loss, and is told once
// what was lost; and that trainers that keep step continue after a shard has undone some steps.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { run } from "../../cli/spawn-command.ts";
import type { TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";
import { failureOf } from "../host/damage.ts";
import { Archive } from "../host/journal-fold.ts";

let library: BuiltLibrary;
let probe: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  probe = await library.program("probe");
});

afterAll(async () => {
  await library?.remove();
});

/** Loses a record of shard 0, has it found out by a new host, and accepts it; gives that host. */
async function loseFrom(job: TestJob, seq: number): Promise<TestHost> {
  for (const host of job.hosts) await job.crash(host);
  const connection = await connect({ servers: job.broker.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.deleteMessage(`PS_${job.job}_0`, seq);
  await connection.close();
  const host = await job.host();
  expect(await failureOf(host, 0)).toBe("JOURNAL_DAMAGED");
  const command = [
    "recover",
    "--job",
    job.job,
    "--url",
    job.broker.url,
    "--from",
    "prefix",
    "--yes",
  ];
  expect(await run(command)).toMatchObject({ code: 0 });
  await host.until(() => host.serving.includes(0));
  return host;
}

test("a loss that was accepted is told once", async () => {
  const job = await startServedJob({ shards: 1 });
  const program = startProgram(probe, [job.broker.url, job.job, "c", `${HANG_MS}`]);
  await program.line(0);
  expect(await program.ask("create")).toMatch(/^OK/);
  expect(await program.ask("fallbacks")).toMatch(/^OK/);
  for (let i = 0; i < 6; i++) expect(await program.ask("push")).toMatch(/^OK/);
  await using archive = await Archive.open(job.broker.url, job.job);
  const { last: records } = await archive.journal(0);
  await loseFrom(job, records - 3);
  expect(await program.ask("push")).toMatch(/^OK/);
  expect(await program.ask("fallbacks")).toMatch(new RegExp(`^0:1:${records - 3}-${records} OK`));
  expect(await program.ask("fallbacks")).toMatch(/^OK/);
  // The first value is 1; two pushes are kept, and one came after.
  expect(await program.ask("get")).toMatch(/^4 OK/);
  program.finish();
  await program.end();
});

test("a record that was put aside is told, and those behind it count as kept", async () => {
  const job = await startServedJob({ shards: 1 });
  for (const host of job.hosts) await job.crash(host);
  const host = await job.host({}, testProgram("faulty-kernel"));
  const program = startProgram(probe, [job.broker.url, job.job, "c", `${HANG_MS}`]);
  await program.line(0);
  expect(await program.ask("create")).toMatch(/^OK/);
  for (let i = 0; i < 2; i++) expect(await program.ask("push")).toMatch(/^OK/);
  const other = await job.trainer("other");
  await expect(other.pushFull("p", Float32Array.of(1), 1, 666)).rejects.toMatchObject({
    code: "FOLD_FAILED",
  });
  expect(await failureOf(host, 0)).toBe("FOLD_FAILED");
  await using archive = await Archive.open(job.broker.url, job.job);
  const { last: at } = await archive.journal(0);
  expect(await program.ask("push")).toMatch(/^FOLD_FAILED/);
  const command = ["recover", "--job", job.job, "--url", job.broker.url, "--from", "rest", "--yes"];
  expect(await run(command)).toMatchObject({ code: 0 });
  expect(await program.ask("push")).toMatch(/^OK/);
  expect(await program.ask("fallbacks")).toMatch(new RegExp(`^0:1:${at}-${at} OK`));
  // The first value is 1; four pushes count, one of them behind the record that was put aside.
  expect(await program.ask("get")).toMatch(/^5 OK/);
  program.finish();
  await program.end();
});

test("trainers that keep step continue after steps were undone", async () => {
  const synchronization = { mode: "sync", trainers: 2 } as const;
  const job = await startServedJob({ shards: 1, synchronization, leaseMs: MORTAL_LEASE_MS });
  const [a, b] = ["a", "b"].map((id) =>
    startProgram(probe, [job.broker.url, job.job, id, `${HANG_MS}`]),
  );
  if (a === undefined || b === undefined) throw new Error("two were started");
  const both = (line: string): Promise<string[]> => Promise.all([a.ask(line), b.ask(line)]);
  await Promise.all([a.line(0), b.line(0)]);
  expect(await a.ask("create")).toMatch(/^OK/);
  for (let i = 0; i < 5; i++) expect((await both("grad")).join()).toMatch(/^OK .*,OK/);
  expect(await both("get")).toEqual([
    expect.stringMatching(/^-4 OK/),
    expect.stringMatching(/^-4 OK/),
  ]);
  await using archive = await Archive.open(job.broker.url, job.job);
  const gradients = (await archive.records(0)).filter(({ subject }) => subject.includes(".push."));
  // The first of step 4.
  await loseFrom(job, gradients[6]?.seq ?? 0);
  expect(await a.ask("get")).toMatch(/^-2 OK/);
  // One has read since and one has not: what the shard, which has gone back, finds too early is sent again.
  const sent = a.ask("grad");
  expect(await b.ask("grad")).toMatch(/^OK/);
  expect(await sent).toMatch(/^OK/);
  for (let i = 0; i < 2; i++) expect((await both("grad")).join()).toMatch(/^OK .*,OK/);
  expect(await both("get")).toEqual([
    expect.stringMatching(/^-5 OK/),
    expect.stringMatching(/^-5 OK/),
  ]);
  for (const program of [a, b]) {
    program.finish();
    await program.end();
  }
});
