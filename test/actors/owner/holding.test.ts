// Proves what the error for a lost journal says, with and without records that had been folded; and
// which journal a shard goes on with, on one that holds nothing where the shard has got to.
import { describe, expect, test } from "vitest";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import { checkJournal, journalLost } from "../../../src/actors/owner/holding.ts";

test("records that had been folded are named", () => {
  const error = journalLost({ shard: 3 }, 4, 9, "ends too early");
  expect(error).toMatchObject({ code: "JOURNAL_LOST", details: { shard: 3, from: 4, to: 9 } });
  expect(error.message).toBe("shard 3: the journal ends too early; records 4 to 9 are lost");
});

test("a journal of which nothing had been folded is only said to be gone", () => {
  expect(journalLost({ shard: 3 }, 1, 0, "stream is gone").message).toBe(
    "shard 3: the journal stream is gone; nothing of it had been folded",
  );
});

describe("a journal without the record where the shard has got to", () => {
  const range = { firstSeq: 1, lastSeq: 9, missing: [8], lost: undefined };
  const info = { created: "now", ...range, bytes: 1, bytesMax: 2 };
  const journal = {
    shard: 3,
    info: () => Promise.resolve(info),
    record: () => Promise.resolve(undefined),
  } as unknown as Journal;

  const check = (shard: { seq: number; lastCrc: number }) =>
    checkJournal(journal, { generation: 1, created: "now", shard, mark: undefined });

  test("is gone on with if records were passed over up to there", async () => {
    expect(await check({ seq: 8, lastCrc: 0 })).toEqual(info);
  });

  test("is damaged if a record was folded there", async () => {
    await expect(check({ seq: 8, lastCrc: 77 })).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { shard: 3, expected: 8 },
    });
  });
});
