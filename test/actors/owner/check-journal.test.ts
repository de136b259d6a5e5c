// Proves what the error for a lost journal says, with and without records that had been folded; and which
// journals a shard accepts: one without a record at the shard's position, and one that lacks records
// according to the watermark of a former owner. And that a leader which may be a former one is not believed.
import { describe, expect, test } from "vitest";
import { recordCrc } from "../../../src/actors/fold/journal-record.ts";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import { checkJournal, journalLost } from "../../../src/actors/journal/journal-check.ts";
import type { Watermark } from "../../../src/actors/journal/watermark.ts";
import { encodeMessage, type HostRecord } from "../../../src/protocol/index.ts";
import { withoutPauses } from "../../support/without-pauses.ts";

test("folded records that are missing are named", () => {
  const error = journalLost(3, 4, 9, "ends too early");
  expect(error).toMatchObject({ code: "JOURNAL_LOST", details: { shard: 3, from: 4, to: 9 } });
  expect(error.message).toBe("shard 3: the journal ends too early; records 4 to 9 are lost");
});

test("a journal of which nothing had been folded is only said to be gone", () => {
  expect(journalLost(3, 1, 0, "stream is gone").message).toBe(
    "shard 3: the journal stream is gone; nothing of it had been folded",
  );
});

describe("a journal without the last record that the shard has folded", () => {
  const range = { firstSeq: 1, lastSeq: 9, missing: [8], lost: undefined };
  const info = { created: "now", ...range, bytes: 1, bytesMax: 2 };
  const journal = {
    shard: 3,
    info: () => Promise.resolve(info),
    record: () => Promise.resolve(undefined),
  } as unknown as Journal;

  const check = (shard: { seq: number; lastCrc: number }) =>
    checkJournal(journal, { generation: 1, created: "now", shard, watermark: undefined });

  test("is accepted if records were skipped up to there", async () => {
    expect(await check({ seq: 8, lastCrc: 0 })).toEqual(info);
  });

  test("is damaged if a record was folded there", async () => {
    await expect(check({ seq: 8, lastCrc: 77 })).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { shard: 3, expected: 8 },
    });
  });
});

describe("a journal's stream", () => {
  const shard = { seq: 8, lastCrc: 77 };
  const range = { firstSeq: 9, lastSeq: 9, missing: [], lost: undefined };
  const info = { created: "later", ...range, bytes: 1, bytesMax: 2 };
  const journal = {
    shard: 3,
    info: () => Promise.resolve(info),
    record: () => Promise.resolve(undefined),
  } as unknown as Journal;

  test("that was made anew since has lost all that was folded", async () => {
    const expected = { generation: 1, created: "now", shard, watermark: undefined };
    await expect(checkJournal(journal, expected)).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { shard: 3, from: 1, to: 8 },
    });
  });

  test("whose time is not known is compared by its records", async () => {
    const unread = { seq: 8, lastCrc: 0 };
    const expected = { generation: 1, created: "", shard: unread, watermark: undefined };
    expect(await checkJournal(journal, expected)).toEqual(info);
  });

  test("from which the last record folded was removed is damaged, and says where it begins", async () => {
    const expected = { generation: 1, created: "later", shard, watermark: undefined };
    await expect(checkJournal(journal, expected)).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { shard: 3, expected: 8, found: 9 },
    });
  });
});

describe("a replicated journal", () => {
  const payload = encodeMessage({ n: 1 });
  const shard = { seq: 8, lastCrc: recordCrc(payload) };
  const range = { firstSeq: 1, missing: [], lost: undefined, bytes: 1, bytesMax: 2 };

  /** What a former leader does not know yet, it knows at the second question. */
  function makeJournal(appended: HostRecord[] = []): Journal {
    const [lastSeqs, records] = [
      [5, 9],
      [undefined, { seq: 8, payload }],
    ];
    return {
      shard: 3,
      isReplicated: true,
      info: () => Promise.resolve({ created: "now", ...range, lastSeq: lastSeqs.shift() ?? 9 }),
      record: () => Promise.resolve(records.length > 1 ? records.shift() : records[0]),
      soundCopy: () => Promise.resolve(undefined),
      append: (record: HostRecord) => {
        appended.push(record);
        return Promise.resolve({ generation: 1, seq: 9 });
      },
    } as unknown as Journal;
  }

  test("has lost neither its end nor a record that only a former leader does not know", async () => {
    withoutPauses();
    const expected = { generation: 1, created: "now", shard, watermark: undefined };
    expect(await checkJournal(makeJournal(), expected)).toMatchObject({ lastSeq: 9 });
  });

  test("whose creation was not completed gets no record: it takes none but its rules", async () => {
    const appended: HostRecord[] = [];
    const unread = { seq: 0, lastCrc: 0 };
    const expected = { generation: 1, created: "", shard: unread, watermark: undefined };
    expect(await checkJournal(makeJournal(appended), expected)).toMatchObject({ lastSeq: 5 });
    expect(appended).toEqual([]);
  });
});

describe("a journal is checked against the watermark of a former owner", () => {
  const PAYLOAD = encodeMessage({ n: 1 });
  const CRC = recordCrc(PAYLOAD);
  const watermark = (seq: number, generation = 1): Watermark => ({
    term: 1,
    generation,
    seq,
    recordCrc: CRC,
    checksum: [1, 2, 3],
    earlier: [],
  });

  /** A journal with these records, whose checksums are all the same, up to a last sequence. */
  function check(
    options: { records: number[]; lastSeq: number; missing?: number[]; firstSeq?: number },
    watermark: Watermark,
    folded = 3,
  ): Promise<unknown> {
    const { records, lastSeq, missing = [], firstSeq = 1 } = options;
    const info = { created: "now", firstSeq, lastSeq, missing, lost: undefined };
    const journal = {
      shard: 3,
      info: () => Promise.resolve({ ...info, bytes: 1, bytesMax: 2 }),
      record: (_generation: number, seq: number) =>
        Promise.resolve(records.includes(seq) ? { seq, payload: PAYLOAD } : undefined),
    } as unknown as Journal;
    const shard = { seq: folded, lastCrc: CRC };
    return checkJournal(journal, { generation: 1, created: "now", shard, watermark });
  }

  test("and is the one that was folded if it holds that record", async () => {
    await expect(check({ records: [3, 8], lastSeq: 8 }, watermark(8))).resolves.toBeDefined();
    await expect(check({ records: [3, 8], lastSeq: 11 }, watermark(8))).resolves.toBeDefined();
  });

  test("and has lost what lies behind its end", async () => {
    await expect(check({ records: [3, 7], lastSeq: 7 }, watermark(8))).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { shard: 3, from: 8, to: 8 },
    });
    await expect(check({ records: [3], lastSeq: 5 }, watermark(8))).rejects.toMatchObject({
      details: { from: 6, to: 8 },
    });
  });

  test("and has lost records of which only sequences are left at its end", async () => {
    const holed = { records: [3, 5], lastSeq: 9, missing: [6, 7, 8, 9] };
    await expect(check(holed, watermark(8))).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { from: 6, to: 8 },
    });
  });

  test("and is damaged if that record is not there, or another", async () => {
    await expect(check({ records: [3], lastSeq: 9 }, watermark(8))).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { expected: 8 },
    });
    const other = { ...watermark(8), recordCrc: CRC + 1 };
    await expect(check({ records: [3, 8], lastSeq: 9 }, other)).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { seq: 8, expected: CRC + 1, found: CRC },
    });
  });

  test("and against what is folded here if that is later, whatever the watermark says", async () => {
    await expect(check({ records: [9], lastSeq: 9 }, watermark(8), 9)).resolves.toBeDefined();
    await expect(check({ records: [8], lastSeq: 8 }, watermark(8), 9)).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { from: 9, to: 9 },
    });
    await expect(check({ records: [8], lastSeq: 8 }, watermark(8), 3)).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { expected: 3 },
    });
  });

  test("unless the watermark is of another journal", async () => {
    await expect(check({ records: [3], lastSeq: 3 }, watermark(8, 2))).resolves.toBeDefined();
    await expect(check({ records: [3], lastSeq: 3 }, watermark(8, 1))).rejects.toBeDefined();
  });

  test("and must reach back to what is folded here", async () => {
    const purged = { records: [5, 8], lastSeq: 8, firstSeq: 5 };
    await expect(check(purged, watermark(8))).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { expected: 4, found: 5 },
    });
    const bound = { records: [3, 4, 8], lastSeq: 8, firstSeq: 4 };
    await expect(check(bound, watermark(8))).resolves.toBeDefined();
  });
});
