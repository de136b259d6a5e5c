// Proves that a shard which has lost something goes on from an archive of its job: without any loss, where the
// archive holds what the broker has lost and the broker what came after the archive; with the records that were
// lost, in place of those that the broker took under their numbers; and from nothing but the archive. The damage
// is done to the broker's files while it is stopped, or through its API; commands are the compiled program.
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Client, ShardFallback } from "../../../src/client/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { snapshotAll, untilWatermarkReached } from "./control.ts";
import { failureOf, hurtUpdate, streamDirectory } from "./damage.ts";
import { Archive } from "./journal-fold.ts";
import { storeAddition } from "./raw-trainer.ts";

const ONE = BigInt64Array.of(1n);
const STREAM = "PS_j_0";

let job: TestJob;
let host: TestHost;
let client: Client;
let directory: string;
/** What the trainer was told to be lost. */
let told: ShardFallback[];

beforeEach(async () => {
  told = [];
  directory = await mkdtemp(join(tmpdir(), "pserver-recover-"));
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1 });
  host = await job.host();
  client = await job.trainer("a", { onFallback: (fallback) => told.push(fallback) });
  await client.createIfNotAlreadyCreated("count", BigInt64Array.of(0n));
});

afterEach(async () => {
  await job.remove();
  await rm(directory, { recursive: true });
});

async function raise(times: number): Promise<void> {
  for (let i = 0; i < times; i++) await client.pushFull("count", ONE, 1, 1);
}

async function count(): Promise<number> {
  return Number((await client.pullFull("count")).data[0]);
}

function pserver(command: string, ...args: string[]): Promise<Finished> {
  return run([command, ...args, "--job", job.job, "--url", job.broker.url]);
}

async function archiveAll(): Promise<void> {
  expect(await pserver("archive", directory, "--once")).toMatchObject({ code: 0 });
}

/** What the command finds of the shard, with the archive. */
async function findings(): Promise<Record<string, unknown>> {
  const { stdout } = await pserver("recover", "--json", "--archive", directory);
  return JSON.parse(stdout).shards[0];
}

function recoverFromArchive(): Promise<Finished> {
  return pserver("recover", "--archive", directory, "--from", "archive", "--yes");
}

async function lastRecord(): Promise<number> {
  await using archive = await Archive.open(job.broker.url, job.job);
  return await archive.lastRecord(0);
}

test("a damaged record comes from the archive, and those after the archive from the broker", async () => {
  await raise(12);
  await archiveAll();
  const archivedSeq = await lastRecord();
  await raise(8);
  await untilWatermarkReached(job);
  const { at, last } = await hurtUpdate(job, host, 9);
  const second = await job.host();
  expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
  expect(await findings()).toMatchObject({
    archive: { name: directory, generation: 1, seq: last, archivedSeq, lacks: [] },
    choices: [
      { from: "archive", generation: 1, seq: last, lost: { records: 0 } },
      { from: "prefix", seq: at - 1 },
    ],
  });
  const shown = await pserver("recover", "--archive", directory);
  expect(shown.stdout.replace(/\s+/g, " ")).toContain(
    `up to record ${last} of generation 1, the last ${last - archivedSeq} from the broker`,
  );
  expect(shown.stderr).toContain(`--archive ${directory} --from archive|prefix --yes`);
  expect(await recoverFromArchive()).toMatchObject({ code: 0 });
  await second.until(() => second.serving.includes(0));
  expect(await count()).toBe(20);
  await raise(2);
  expect(await count()).toBe(22);
  expect(told).toEqual([]);
});

test("records that the archive holds stand in for those that the broker took under their numbers", async () => {
  await raise(5);
  const kept = await lastRecord();
  const copy = join(job.broker.storeDir, "copy");
  const journal = streamDirectory(job, STREAM);
  await job.broker.stop();
  await cp(journal, copy, { recursive: true });
  await job.broker.start();
  await raise(5);
  await untilWatermarkReached(job);
  await archiveAll();
  const last = await lastRecord();
  await host.kill();
  await job.broker.stop();
  await rm(journal, { recursive: true });
  await cp(copy, journal, { recursive: true });
  await job.broker.start();
  {
    // As of a trainer that nothing has told of the fault: the client keeps its records until a host answers.
    await using archive = await Archive.open(job.broker.url, job.job);
    await storeAddition(archive.connection, "a", client.session, 12);
  }
  const replaced = await lastRecord();
  const second = await job.host();
  expect(await failureOf(second, 0)).toBe("JOURNAL_LOST");
  const lost = { from: kept + 1, to: replaced };
  expect(await findings()).toMatchObject({
    archive: { seq: last, archivedSeq: last, replacedFrom: kept + 1 },
    choices: [
      { from: "archive", seq: last, lost: { ...lost, records: replaced - kept } },
      { from: "prefix", seq: replaced },
    ],
  });
  expect(await recoverFromArchive()).toMatchObject({ code: 0 });
  await second.until(() => second.serving.includes(0));
  expect(await count()).toBe(10);
  await vi.waitFor(
    () =>
      expect(told).toEqual([
        { shard: 0, generation: 1, lost: expect.objectContaining({ from: kept + 1 }) },
      ]),
    { timeout: HANG_MS, interval: 20 },
  );
});

test("a shard whose journal and snapshots are gone goes on from the archive alone", async () => {
  await raise(6);
  await snapshotAll(job);
  await raise(3);
  await untilWatermarkReached(job);
  await archiveAll();
  const last = await lastRecord();
  await host.kill();
  await using archive = await Archive.open(job.broker.url, job.job);
  const manager = await jetstreamManager(archive.connection);
  await manager.streams.delete(STREAM);
  await manager.streams.purge(archive.subjects.snapshotStream());
  expect((await pserver("recover")).stdout).toContain("nothing of it can be saved");
  expect(await findings()).toMatchObject({
    condition: "stopped",
    choices: [{ from: "archive", generation: 1, seq: last, lost: { records: 0 } }],
  });
  expect(await recoverFromArchive()).toMatchObject({ code: 0 });
  await job.host();
  expect(await count()).toBe(9);
  await raise(1);
  expect(await count()).toBe(10);
});

test("an archive of another life of the job, or of another job, is not used", async () => {
  await raise(3);
  await archiveAll();
  await client.close();
  await host.stop();
  const removed = await run(["remove", job.job, "--yes", "--url", job.broker.url]);
  expect(removed).toMatchObject({ code: 0 });
  const second = await job.host();
  const other = await job.trainer("b");
  await other.createIfNotAlreadyCreated("count", BigInt64Array.of(0n));
  await other.pushFull("count", ONE, 1, 1);
  await snapshotAll(job);
  for (let i = 0; i < 4; i++) await other.pushFull("count", ONE, 1, 1);
  await hurtUpdate(job, second, 2);
  expect(await findings()).toMatchObject({
    archive: { problem: expect.stringContaining("another life of the job") },
    choices: expect.not.arrayContaining([expect.objectContaining({ from: "archive" })]),
  });
  const refused = await recoverFromArchive();
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("received archive")]);
  const args = ["recover", "--job", "j", "--url", job.broker.url, "--archive", directory];
  expect(await run([...args.slice(0, -2), "--from", "archive", "--yes"])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("--from archive: expected --archive with it; received none"),
  });
});
