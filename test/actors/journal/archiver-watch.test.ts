import { beforeEach, expect, test } from "vitest";
import {
  type ArchiverEntry,
  ArchiverWatch,
  archiverKey,
  parseArchiverEntry,
  toArchiverJson,
} from "../../../src/actors/journal/archivers.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

// Proves when hosts stop waiting for an archiver, on a bucket in memory and a clock that the test moves:
// not while its record changes, but once the record has stayed the same for longer than its grace time
// on the host's own clock; then the record is removed. Records that cannot be read hold nothing back.

const KEY = archiverKey("a");
let records: MemoryBucket;
let nowMs: number;
let watch: ArchiverWatch;

beforeEach(() => {
  records = new MemoryBucket();
  nowMs = 5_000;
  watch = new ArchiverWatch({ bucket: records, nowMs: () => nowMs });
});

function record(seq: number): ArchiverEntry {
  const shard = { record: { generation: 1, seq }, snapshot: { generation: 1, seq: seq - 1 } };
  const nothing = { record: { generation: 0, seq: 0 }, snapshot: { generation: 0, seq: 0 } };
  return {
    ...{ archiver: "a", machine: "m", pid: 7, writtenMs: 123, graceMs: 1_000 },
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

test("a host that sees an archiver for the first time waits for its whole grace time", async () => {
  await records.create(KEY, toArchiverJson(record(9)));
  await watch.copied(0);
  nowMs += 10_000;
  const other = new ArchiverWatch({ bucket: records, nowMs: () => nowMs });
  expect(await other.copied(0)).toHaveLength(1);
});

test("a record of another version is left alone", async () => {
  await records.create(KEY, { format: 99 });
  await records.create(archiverKey("b"), toArchiverJson(record(9)));
  nowMs += 10_000;
  expect(await watch.copied(0)).toHaveLength(1);
  expect(await records.read(KEY)).toBeDefined();
});
