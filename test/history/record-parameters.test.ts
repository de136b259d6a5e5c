// Proves that the parameters of a record are named, also those of a batch, which has only numbers of blocks.
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openHistory } from "../../src/history/open-journal.ts";
import { RecordParameters } from "../../src/history/record-parameters.ts";
import { recordAt, type TimedRecord } from "../../src/history/source.ts";

const ARCHIVE = join(import.meta.dirname, "../fixtures/history/archive-1");
/** The ends of both journals. */
const ENDS = [51, 44].map((seq) => ({ generation: 1, seq }));
const { signal } = new AbortController();

async function namesOf(shard: number, change: (record: TimedRecord) => TimedRecord) {
  const source = await openHistory({ kind: "archive", archive: ARCHIVE });
  onTestFinished(() => source.close());
  const end = ENDS[shard];
  const record = end && (await recordAt(source.shard(shard), end, signal));
  if (record === undefined) throw new Error(`shard ${shard} has no end`);
  return await new RecordParameters(source, ENDS, signal).of(shard, change(record));
}

test("of an update it is the one in its subject", async () => {
  expect(await namesOf(1, (record) => record)).toEqual(["v"]);
});

test("of a batch they are those that its numbers belong to", async () => {
  expect(await namesOf(0, (record) => record)).toEqual(["u", "w"]);
});

test("a record that cannot be read, or is of a host, names none", async () => {
  const cut = (record: TimedRecord) => ({ ...record, payload: record.payload.subarray(0, 30) });
  expect(await namesOf(0, cut)).toEqual([]);
  expect(await namesOf(0, (record) => ({ ...record, subject: "elsewhere" }))).toEqual([]);
});
