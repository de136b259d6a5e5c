// Proves when a hole in a journal may be passed over and where the records of a journal end, on
// states as nats-server 2.12 gives them: of a stream whose disk was full it lists the sequences
// without a record; a record that was damaged in the store it still counts.
import { describe, expect, test } from "vitest";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import { checkHole, findHead, lastRecordSeq } from "../../../src/actors/owner/hole.ts";

const HOLE = { from: 11, to: 14 };

/** A journal of shard 3 that can read these records. */
function journalOf(...records: number[]): Journal {
  const record = (_generation: number, seq: number): Promise<{ seq: number } | undefined> =>
    Promise.resolve(records.includes(seq) ? { seq } : undefined);
  return { shard: 3, record } as unknown as Journal;
}

describe("a hole may be passed over", () => {
  test("above the head of the take-over, if the stream holds none of its records", () => {
    checkHole(3, HOLE, 10, { missing: [11, 12, 13, 14] });
    checkHole(3, HOLE, 4, { missing: [2, 11, 12, 13, 14, 20] });
  });

  test.each([
    ["that begins at the head: a former owner may have folded it", 11, [11, 12, 13, 14]],
    ["below the head", 30, [11, 12, 13, 14]],
    ["whose last record is counted: it was there and is damaged", 10, [11, 12, 13]],
    ["whose first record is counted", 10, [12, 13, 14]],
    ["of which the stream knows nothing", 10, []],
  ])("but none %s", (_which, headSeq, missing) => {
    expect(() => checkHole(3, HOLE, headSeq, { missing })).toThrow(
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
    ["does not lie before an earlier hole", 9, [3, 4], 9],
    ["lies between two holes", 9, [3, 4, 8, 9], 7],
    ["is none where all are missing", 3, [1, 2, 3], 0],
  ])("%s", (_where, lastSeq, missing, expected) => {
    expect(lastRecordSeq({ lastSeq, missing })).toBe(expected);
  });

  test("is the head of a fold behind it", async () => {
    const info = { lastSeq: 9, missing: [8, 9], lost: undefined };
    expect(await findHead(journalOf(7), 1, 3, info)).toBe(7);
  });

  test("is not looked for by a fold that is there, or beyond it", async () => {
    const info = { lastSeq: 9, missing: [8, 9], lost: undefined };
    expect(await findHead(journalOf(), 1, 7, info)).toBe(7);
    expect(await findHead(journalOf(), 1, 9, info)).toBe(9);
  });

  test("is a loss if it cannot be read: a fold would wait for it for ever", async () => {
    const info = { lastSeq: 9, missing: [], lost: undefined };
    await expect(findHead(journalOf(8), 1, 3, info)).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { shard: 3, expected: 9 },
    });
  });

  test("lies before what the broker names as lost: a disk was full since it started", async () => {
    const info = { lastSeq: 9, missing: [8, 9], lost: [2, 8, 9] };
    expect(await findHead(journalOf(7), 1, 3, info)).toBe(7);
  });

  test.each([
    ["cannot name", []],
    ["names elsewhere", [2, 8]],
  ])("is not known if the broker has found damage that it %s", async (_what, lost) => {
    const info = { lastSeq: 9, missing: [8, 9], lost };
    for (const folded of [3, 7]) {
      await expect(findHead(journalOf(7), 1, folded, info)).rejects.toMatchObject({
        code: "JOURNAL_DAMAGED",
        details: { shard: 3, expected: 8 },
      });
    }
  });

  test("is known if the broker has found damage and no sequence lacks its record", async () => {
    const info = { lastSeq: 9, missing: [4], lost: [] };
    expect(await findHead(journalOf(9), 1, 5, info)).toBe(9);
  });
});
