import { beforeEach, expect, test, vi } from "vitest";
import {
  ARCHIVERS_MAX,
  type ArchiverEntry,
  ArchiverWatch,
  archiverKey,
  parseArchiverEntry,
  readArchivers,
  readStoppedArchivers,
  toArchiverJson,
} from "../../../src/actors/journal/archivers.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

// Proves when hosts stop waiting for an archiver, on a bucket in memory and a clock that the test moves:
// not while its record changes, but once the record has stayed the same for longer than its grace time
// on the host's own clock; then the record is removed, and kept among those that have stopped. Records that cannot be read hold nothing back.

const KEY = archiverKey("a");
let records: MemoryBucket;
let nowMs: number;
let watch: ArchiverWatch;
let stopped: string[];

beforeEach(() => {
  records = new MemoryBucket();
  nowMs = 5_000;
  stopped = [];
  watch = newWatch();
});

function newWatch(): ArchiverWatch {
  return new ArchiverWatch({
    ...{ bucket: records, nowMs: () => nowMs },
    onStopped: (shard, { code, message }) => stopped.push(`${shard}: ${code}: ${message}`),
  });
}

function record(seq: number): ArchiverEntry {
  const shard = { record: { generation: 1, seq }, snapshot: { generation: 1, seq: seq - 1 } };
  const nothing = { record: { generation: 0, seq: 0 }, snapshot: { generation: 0, seq: 0 } };
  return {
    ...{ archiver: "a", run: "r", machine: "m", pid: 7, writtenMs: 123, graceMs: 1_000 },
    shards: [shard, nothing],
  };
}

test("a record comes back as it was written", () => {
  expect(parseArchiverEntry(toArchiverJson(record(9)), KEY)).toEqual(record(9));
});

test("tells what an archiver has copied of a shard", async () => {
  await records.create(KEY, toArchiverJson(record(9)));
  expect(await watch.copied(0)).toEqual([record(9).shards[0]]);
  expect(await watch.copied(1)).toEqual([record(9).shards[1]]);
  // A shard that it does not know.
  expect(await watch.copied(2)).toEqual([]);
});

test("an archiver that renews its record is waited for, however slow it is", async () => {
  let revision = await records.create(KEY, toArchiverJson(record(9)));
  for (let i = 0; i < 10; i++) {
    expect(await watch.copied(0)).toHaveLength(1);
    nowMs += 900;
    revision = await records.update(KEY, toArchiverJson(record(9)), revision ?? 0);
  }
});

test("an archiver that does not renew its record is forgotten after its grace time, and the record removed", async () => {
  await records.create(KEY, toArchiverJson(record(9)));
  expect(await watch.copied(0)).toHaveLength(1);
  nowMs += 1_000;
  expect(await watch.copied(0)).toHaveLength(1);
  nowMs += 1;
  expect(await watch.copied(0)).toEqual([]);
  expect(await records.read(KEY)).toBeUndefined();
});

test("an archiver that was given up is told once, and kept as stopped for a week", async () => {
  await records.create(KEY, toArchiverJson(record(9)));
  const other = newWatch();
  await watch.copied(0);
  await other.copied(0);
  nowMs += 1_001;
  await Promise.all([watch.copied(0), other.copied(0)]);
  expect(stopped).toEqual([
    "0: TIMEOUT: the archiver, process 7 on m, has said nothing for 1000 ms",
  ]);
  expect(await readArchivers(records)).toEqual([]);
  const week = 7 * 86_400_000;
  expect(await readStoppedArchivers(records, 123 + week - 1)).toEqual([record(9)]);
  expect(await readStoppedArchivers(records, 123 + week)).toEqual([]);
});

test("an archiver that has said why it ends is told with that", async () => {
  const failed = {
    ...record(9),
    completeMs: 99,
    failure: { code: "DISK_FULL", message: "no space" },
  };
  await records.create(KEY, toArchiverJson(failed));
  await watch.copied(1);
  nowMs += 1_001;
  await watch.copied(1);
  expect(stopped).toEqual(["1: DISK_FULL: the archiver, process 7 on m, has ended: no space"]);
  expect(await readStoppedArchivers(records, 200)).toEqual([failed]);
});

test("an archiver that renews its record while it is given up has not stopped", async () => {
  await records.create(KEY, toArchiverJson(record(9)));
  await watch.copied(0);
  nowMs += 1_001;
  const { remove } = records;
  vi.spyOn(records, "remove").mockImplementationOnce(async (key, revision) => {
    await records.update(KEY, toArchiverJson(record(10)), revision);
    return await remove.call(records, key, revision);
  });
  expect(await watch.copied(0)).toEqual([]);
  expect(stopped).toEqual([]);
  expect(await readStoppedArchivers(records, 200)).toEqual([]);
  expect(await watch.copied(0)).toEqual([record(10).shards[0]]);
});

test("a host that sees an archiver for the first time waits for its whole grace time", async () => {
  await records.create(KEY, toArchiverJson(record(9)));
  await watch.copied(0);
  nowMs += 10_000;
  const other = newWatch();
  expect(await other.copied(0)).toHaveLength(1);
});

test("a record of another version is left alone", async () => {
  await records.create(KEY, { format: 99 });
  await records.create(archiverKey("b"), toArchiverJson(record(9)));
  nowMs += 10_000;
  expect(await watch.copied(0)).toHaveLength(1);
  expect(await records.read(KEY)).toBeDefined();
});

test("of archivers that have stopped only the last are kept", async () => {
  for (let i = 0; i < ARCHIVERS_MAX + 3; i++) {
    const archiver = `archive-${i}`;
    await records.create(archiverKey(archiver), toArchiverJson({ ...record(9), archiver }));
    await watch.copied(0);
    nowMs += 1_001;
    await watch.copied(0);
  }
  const left = await readStoppedArchivers(records, 123);
  expect(left).toHaveLength(ARCHIVERS_MAX);
  expect(left.map(({ archiver }) => archiver)).not.toContain("archive-2");
  expect(left.map(({ archiver }) => archiver)).toContain("archive-3");
});
