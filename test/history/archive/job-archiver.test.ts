// Proves what an archiver does that has lost its registration, on a history and a bucket in memory: if hosts have removed
// it, the archiver begins another run and misses nothing; if a later run has taken the archive over, it ends, and what it
// writes until it knows harms nothing that the later one relies on.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readArchivers } from "../../../src/actors/journal/archivers.ts";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { JobArchiver } from "../../../src/history/archive/job-archiver.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { temporaryDirectory } from "../container/container-files.ts";
import { archivedShard } from "./archive-once.ts";
import { MemoryHistory, type MemoryShard, recordsOf } from "./memory-history.ts";

const GRACE_MS = 10_000;
const { signal } = new AbortController();
let directory: string;
let live: MemoryHistory;
let shard: MemoryShard;
let bucket: MemoryBucket;
let opened: JobArchiver[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  directory = join(temporaryDirectory(), "archive");
  live = new MemoryHistory(1);
  shard = live.shard(0);
  bucket = new MemoryBucket();
  opened = [];
});

afterEach(async () => {
  for (const archiver of opened) await archiver.abandon(new PserverError("ABORTED", "the end"));
  vi.useRealTimers();
});

async function open(): Promise<JobArchiver> {
  const archiver = await JobArchiver.open({
    source: Object.assign(Object.create(live) as MemoryHistory, { bucket }),
    ...{ directory, graceMs: GRACE_MS, lock: () => Promise.resolve() },
    onDamaged: (error) => {
      throw error;
    },
    onUnregistered: () => undefined,
  });
  opened.push(archiver);
  return archiver;
}

/** The positions that hosts are told. */
async function told() {
  return (await readArchivers(bucket)).map(({ entry }) => entry?.shards[0]?.record);
}

/** Lets the registration be renewed. */
async function renew(): Promise<void> {
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
}

/** The archive is sound and has all records. */
async function expectWhole(): Promise<void> {
  expect((await checkArchive(directory, signal)).damage).toEqual([]);
  const all = shard.records.get(1) ?? [];
  const own = await archivedShard(directory);
  expect(await recordsOf(own, { generation: 1, seq: 0 }, all.length)).toEqual(all);
}

test("hosts know of an archiver before it changes the files that another one has left", async () => {
  shard.push(5);
  const dead = await open();
  await dead.copy(signal);
  await renew();
  expect(await told()).toEqual([{ generation: 1, seq: 5 }]);
  const seen: unknown[] = [];
  const { update } = bucket;
  vi.spyOn(bucket, "update").mockImplementation(async (...args) => {
    const files = readdirSync(join(directory, "shard-0", "journal"));
    const revision = await update.apply(bucket, args);
    seen.push([files, await told()]);
    return revision;
  });
  await open();
  expect(seen).toEqual([
    [["1-000000000001.1.open"], [{ generation: 0, seq: 0 }]],
    [["1-000000000001-000000000005.segment"], [{ generation: 1, seq: 5 }]],
  ]);
});

test("one that hosts have given up begins anew, and misses nothing", async () => {
  shard.push(5);
  const archiver = await open();
  await archiver.copy(signal);
  const [registered] = await readArchivers(bucket);
  await bucket.remove(registered?.key ?? "", registered?.revision ?? 0);
  await renew();
  shard.push(5);
  await archiver.copy(signal);
  await renew();
  expect(await told()).toEqual([{ generation: 1, seq: 10 }]);
  await archiver.end();
  expect(await told()).toEqual([]);
  await expectWhole();
});

test("one that hosts have given up completes its files when it ends", async () => {
  shard.push(5);
  const archiver = await open();
  await archiver.copy(signal);
  const [registered] = await readArchivers(bucket);
  await bucket.remove(registered?.key ?? "", registered?.revision ?? 0);
  await archiver.end();
  expect(await told()).toEqual([]);
  expect(readdirSync(join(directory, "shard-0", "journal"))).toEqual([
    "1-000000000001-000000000005.segment",
  ]);
});

test("one that was suspended ends when another has taken over, and harms nothing until then", async () => {
  shard.push(5);
  const late = await open();
  await late.copy(signal);
  const next = await open();
  shard.push(5);
  // It does not know yet.
  await late.copy(signal);
  await next.copy(signal);
  shard.push(5);
  await next.copy(signal);
  await late.copy(signal);
  await renew();
  expect(await told()).toEqual([{ generation: 1, seq: 15 }]);
  await expect(late.copy(signal)).rejects.toMatchObject({ code: "STORE_IN_USE" });
  await expect(late.end()).rejects.toMatchObject({ code: "STORE_IN_USE" });
  await expectWhole();
  await next.end();
  await expectWhole();
});

test("one that begins late leaves the segment alone that a later one is writing", async () => {
  shard.push(5);
  let overtaken: JobArchiver | undefined;
  const { update } = bucket;
  const first = await open();
  await first.copy(signal);
  vi.spyOn(bucket, "update").mockImplementationOnce(async (...args) => {
    const revision = await update.apply(bucket, args);
    // While the second one hangs, a third one takes over and writes.
    overtaken = await open();
    shard.push(5);
    await overtaken.copy(signal);
    return revision;
  });
  await expect(open()).rejects.toMatchObject({ code: "STORE_IN_USE" });
  shard.push(5);
  await overtaken?.copy(signal);
  await overtaken?.end();
  await expectWhole();
});
