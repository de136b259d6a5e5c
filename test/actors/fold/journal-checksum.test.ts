// Proves that the checksum of a journal is that of exactly these records in this order: whatever is changed in a
// record that the fold sees, records that vanish, change places, are exchanged or come twice give another one;
// that a single changed record is named, and no other one is; that it goes on from what a manifest has; and that
// it depends on nothing else. Records, bits and places are drawn by chance.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addRecord,
  ChecksumComparison,
  changedRecords,
  changedRecordsOf,
  checksumField,
  checksumOf,
  isSameChecksum,
  type JournalChecksum,
  journalChanged,
  NO_RECORDS,
  subjectCrcOf,
  toChecksum,
} from "../../../src/actors/fold/journal-checksum.ts";
import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";

const OPTIONS = { subjects: SUBJECTS, shard: SHARD };

function written(): JournalRecord[] {
  const writer = new JournalWriter();
  writer.host({ verb: "rules", rules: 1 });
  writer.init(Float32Array.of(0, 1));
  writer.init(Float32Array.of(0, 1), { parameter: "v" });
  for (let i = 0; i < 6; i++) {
    writer.push(Float32Array.of(i, -i), { op: "mix", alpha: 1, beta: 1 });
  }
  return [...writer.records];
}

const RECORDS = written();

/** The same records with sequences from 1 on. */
const numbered = (records: readonly JournalRecord[]): JournalRecord[] =>
  records.map((record, i) => ({ ...record, seq: i + 1 }));

function folded(records: readonly JournalRecord[]): JournalChecksum {
  const shard = Shard.create(OPTIONS);
  for (const record of records) shard.apply(record);
  return shard.noted.checksum;
}

/** As {@link folded}, without a fold. */
function summed(records: readonly JournalRecord[]): JournalChecksum {
  const sums = new Uint32Array(3);
  for (const { subject, payload, seq } of records) {
    addRecord(sums, seq, checksumOf(subjectCrcOf(subject), payload, false));
  }
  return toChecksum(sums);
}

const WHOLE = summed(RECORDS);

function replaced(seq: number, record: JournalRecord): JournalRecord[] {
  return RECORDS.map((each) => (each.seq === seq ? { ...record, seq } : each));
}

/** The record that a broker gives after it has counted some bytes more or fewer to the subject. */
function shifted(record: JournalRecord, bytes: number): JournalRecord {
  const stored = Buffer.concat([Buffer.from(record.subject), record.payload]);
  const subjectBytes = record.subject.length + bytes;
  const subject = stored.subarray(0, subjectBytes).toString("latin1");
  return { ...record, subject, payload: Uint8Array.from(stored.subarray(subjectBytes)) };
}

function expectNamed(changed: readonly JournalRecord[], seq: number): void {
  const range = changedRecords(WHOLE, summed(changed), { from: 1, to: RECORDS.length });
  expect(range).toEqual({ from: seq, to: seq });
}

describe("a changed record is noticed and named", () => {
  test("whichever bit of its payload has changed", () => {
    for (const record of RECORDS) {
      for (let bit = 0; bit < 8 * record.payload.length; bit += 3) {
        const payload = Uint8Array.from(record.payload);
        payload[bit >> 3] = (payload[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expectNamed(replaced(record.seq, { ...record, payload }), record.seq);
      }
    }
  });

  test("if bytes went from its subject to its payload, or the other way", () => {
    for (const record of RECORDS) {
      for (const bytes of [-40, -32, -16, -8, -4, -2, -1, 1, 2, 4, 8, 16, 32]) {
        if (record.subject.length + bytes < 0) continue;
        expectNamed(replaced(record.seq, shifted(record, bytes)), record.seq);
      }
    }
  });

  test.each([
    ["another trainer", SUBJECTS.log(SHARD, "other", "push", "w", 0)],
    ["another parameter", SUBJECTS.log(SHARD, "t", "push", "v", 0)],
    ["another block", SUBJECTS.log(SHARD, "t", "push", "w", 1)],
    ["another verb", SUBJECTS.log(SHARD, "t", "init", "w", 0)],
    ["another shard", SUBJECTS.log(SHARD + 1, "t", "push", "w", 0)],
    ["a host", SUBJECTS.hostLog(SHARD, "rules")],
    ["nobody", "junk"],
  ])("if its subject is that of %s", (_whose, subject) => {
    const [record] = RECORDS.slice(-2) as [JournalRecord];
    expect(record.subject).not.toBe(subject);
    expectNamed(replaced(record.seq, { ...record, subject }), record.seq);
  });

  test("if another one of the same length is in its place, or none of its bytes can be read", () => {
    const [one, other] = RECORDS.slice(-2) as [JournalRecord, JournalRecord];
    expect(one.payload).toHaveLength(other.payload.length);
    expectNamed(replaced(one.seq, other), one.seq);
    for (const payload of [new Uint8Array(0), new Uint8Array(one.payload.length)]) {
      expectNamed(replaced(one.seq, { ...one, payload }), one.seq);
    }
    const junk = new Uint8Array(one.payload.length);
    const before = summed(replaced(one.seq, { ...one, payload: junk }));
    // One that could not be read at first either, and that has changed since.
    const after = summed(replaced(one.seq, { ...one, payload: junk.with(3, 1) }));
    const range = { from: 1, to: RECORDS.length };
    expect(changedRecords(before, after, range)).toEqual({ from: one.seq, to: one.seq });
  });
});

describe("records that are others together are noticed", () => {
  test("if two have changed places", () => {
    for (let a = 0; a < RECORDS.length; a++) {
      for (let b = a + 1; b < RECORDS.length; b++) {
        const swapped = [...RECORDS];
        [swapped[a], swapped[b]] = [RECORDS[b] as JournalRecord, RECORDS[a] as JournalRecord];
        const range = { from: 1, to: RECORDS.length };
        const found = summed(numbered(swapped));
        expect(isSameChecksum(found, WHOLE)).toBe(false);
        expect(changedRecords(WHOLE, found, range)).toEqual(range);
      }
    }
  });

  test("if one has vanished and those behind it have its number, or one is there twice", () => {
    for (let i = 0; i < RECORDS.length; i++) {
      const without = RECORDS.toSpliced(i, 1);
      const twice = RECORDS.toSpliced(i, 0, RECORDS[i] as JournalRecord);
      for (const others of [without, twice]) {
        expect(isSameChecksum(summed(numbered(others)), WHOLE)).toBe(false);
      }
      // Also where the journal has as many records as before.
      const [next] = without.splice(-1) as [JournalRecord];
      const filled = numbered([...without, next, RECORDS[1] as JournalRecord]);
      expect(isSameChecksum(summed(filled), WHOLE)).toBe(false);
    }
  });
});

test("what no part of the fold is does not count, nor by whom or in how many parts it is folded", () => {
  expect(folded(RECORDS.map((record) => ({ ...record, timeMs: 77, reread: true })))).toEqual(WHOLE);
  const shard = Shard.create(OPTIONS);
  for (const record of RECORDS.slice(0, 4)) shard.apply(record);
  const restored = Shard.restore(OPTIONS, shard.saveState(), ({ parameter, index }, slot) => {
    return shard.block(parameter, index)?.slotBytes(slot) ?? new Uint8Array(0);
  });
  restored.continueChecksum(shard.noted.checksum);
  for (const record of RECORDS.slice(4)) restored.apply(record);
  expect(restored.noted).toEqual({ seq: RECORDS.length, checksum: WHOLE });
  restored.restartJournal();
  expect(restored.noted).toEqual({ seq: 0, checksum: NO_RECORDS });
});

test("the fold counts records that it cannot read as they are", () => {
  for (const record of RECORDS.slice(1)) {
    const { length } = record.payload;
    const others = [
      shifted(record, 1),
      { ...record, payload: record.payload.with(-1, 77) },
      { ...record, payload: new Uint8Array(length) },
      { ...record, subject: SUBJECTS.log(SHARD + 1, "t", "push", "w", 0) },
    ];
    for (const other of others) {
      const changed = replaced(record.seq, other);
      expect(folded(changed)).toEqual(summed(changed));
    }
  }
});

test("of any number of records at any place in a journal, the one that changed is named", () => {
  const crc = fc.integer({ min: 0, max: 0xffffffff });
  const journal = fc.record({
    first: fc.integer({ min: 1, max: 2 ** 40 }),
    crcs: fc.array(crc, { minLength: 1, maxLength: 300 }),
    at: fc.nat(),
    other: crc,
  });
  fc.assert(
    fc.property(journal, ({ first, crcs, at, other }) => {
      const place = at % crcs.length;
      // Where the difference has few bits, several places may explain it.
      fc.pre(((other - (crcs[place] ?? 0)) & 0xffff) !== 0);
      const sum = (all: readonly number[]): JournalChecksum => {
        const sums = Uint32Array.of(7, 8, 9);
        for (const [i, each] of all.entries()) addRecord(sums, first + i, each);
        return toChecksum(sums);
      };
      const range = { from: first, to: first + crcs.length - 1 };
      const named = changedRecords(sum(crcs), sum(crcs.with(place, other)), range);
      expect(named).toEqual({ from: first + place, to: first + place });
    }),
    { numRuns: 300 },
  );
});

describe("a comparison", () => {
  test("compares all that was noted at a record, and then what is left", () => {
    const comparison = new ChecksumComparison(3);
    const other: JournalChecksum = [1, 2, 3];
    const sums = Uint32Array.from(WHOLE);
    const noted = [
      { seq: 5, checksum: WHOLE },
      { seq: 5, checksum: WHOLE },
      { seq: 9, checksum: other },
    ];
    comparison.expect(noted, 2);
    for (const seq of [3, 4, 5]) comparison.check(seq, sums);
    expect(comparison.isDone).toBe(false);
    expect(() => comparison.check(9, sums)).toThrow("records 6 to 9 are not all");
    comparison.restart(0);
    expect(comparison.isDone).toBe(true);
    comparison.check(1, sums);
  });
});

test("an error tells which records it names; another one names none", () => {
  for (const range of [
    { from: 4, to: 4 },
    { from: 4, to: 9 },
  ]) {
    expect(changedRecordsOf(journalChanged(3, range))).toEqual(range);
  }
  expect(
    changedRecordsOf(new PserverError("JOURNAL_DAMAGED", "a gap", { expected: 4, found: 5 })),
  ).toBe(undefined);
  expect(
    changedRecordsOf(new PserverError("JOURNAL_LOST", "lost", { from: 4, to: 5 })),
  ).toBeUndefined();
});

test("an entry that is no checksum is refused", () => {
  expect(checksumField({ sum: [1, 0, 0xffffffff] }, "sum")).toEqual([1, 0, 0xffffffff]);
  for (const sum of [
    undefined,
    7,
    [1, 2],
    [1, 2, 3, 4],
    [1, 2, 2 ** 32],
    [1, 2, -1],
    [1, 2, "3"],
  ]) {
    expect(() => checksumField({ sum }, "sum")).toThrow(/sum/);
  }
});
