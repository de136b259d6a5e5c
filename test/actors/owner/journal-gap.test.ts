// Proves when a gap in a journal may be skipped and where the records of a journal end, on
// states as nats-server 2.12 gives them: of a stream whose disk was full it lists the sequences
// without a record; a record that was damaged in the store it still counts.
import { describe, expect, test } from "vitest";
import {
  lastRecordSeq,
  ObservedEnd,
  seqToReach,
} from "../../../src/actors/journal/journal-check.ts";

const GAP = { from: 11, to: 14 };

/** The end of shard 3's journal, as found at the take-over. */
function endAt(seq: number): ObservedEnd {
  const end = new ObservedEnd(3);
  end.note(1, seq);
  return end;
}

describe("a gap may be skipped", () => {
  test("above the end of the take-over, if the stream holds none of its records", () => {
    endAt(10).checkGap(GAP, 1, { missing: [11, 12, 13, 14] });
    endAt(4).checkGap(GAP, 1, { missing: [2, 11, 12, 13, 14, 20] });
  });

  test.each([
    ["that begins at the end: a former owner may have folded it", 11, [11, 12, 13, 14]],
    ["below the end", 30, [11, 12, 13, 14]],
    ["whose last record is counted: it was there and is damaged", 10, [11, 12, 13]],
    ["whose first record is counted", 10, [12, 13, 14]],
    ["of which the stream knows nothing", 10, []],
  ])("but none %s", (_which, headSeq, missing) => {
    expect(() => endAt(headSeq).checkGap(GAP, 1, { missing })).toThrow(
      expect.objectContaining({
        code: "JOURNAL_DAMAGED",
        details: { shard: 3, expected: 11, found: 15 },
      }),
    );
  });
});

describe("the last record", () => {
  test.each([
    ["is that of the last sequence", 9, [], 9],
    ["lies before the sequences that a full disk used up", 9, [7, 8, 9], 6],
    ["does not lie before an earlier gap", 9, [3, 4], 9],
    ["lies between two gaps", 9, [3, 4, 8, 9], 7],
    ["is none where all are missing", 3, [1, 2, 3], 0],
  ])("%s", (_where, lastSeq, missing, expected) => {
    expect(lastRecordSeq({ lastSeq, missing })).toBe(expected);
  });

  test("is the end of a fold behind it", () => {
    const info = { lastSeq: 9, missing: [8, 9], lost: undefined };
    expect(seqToReach(3, 3, info)).toBe(7);
  });

  test("is not asked for by a fold that has reached it, or is beyond it", () => {
    const info = { lastSeq: 9, missing: [8, 9], lost: undefined };
    expect(seqToReach(3, 7, info)).toBe(7);
    expect(seqToReach(3, 9, info)).toBe(9);
  });

  test("lies before what the broker names as lost: a disk was full since it started", () => {
    const info = { lastSeq: 9, missing: [8, 9], lost: [2, 8, 9] };
    expect(seqToReach(3, 3, info)).toBe(7);
  });

  test.each([
    ["cannot name", []],
    ["names elsewhere", [2, 8]],
  ])("is not known if the broker has found damage that it %s", (_what, lost) => {
    const info = { lastSeq: 9, missing: [8, 9], lost };
    for (const folded of [3, 7]) {
      expect(() => seqToReach(3, folded, info)).toThrow(
        expect.objectContaining({
          code: "JOURNAL_DAMAGED",
          details: { shard: 3, expected: 8, found: "nothing" },
        }),
      );
    }
  });

  test("is known if the broker has found damage and no sequence lacks its record", () => {
    const info = { lastSeq: 9, missing: [4], lost: [] };
    expect(seqToReach(3, 5, info)).toBe(9);
  });
});
