// Proves that a verification of a tape finds each message that cannot be read and each range of records that it has no
// lines of, at its beginning, between its messages and at its end, and nothing of a tape that is whole or absent.
import { describe, expect, test } from "vitest";
import { verifyTape } from "../../../src/history/verify-tape.ts";
import { SHARD } from "../../actors/fold/journal-writer.ts";
import type { FoldedShardHistory } from "../folded-history.ts";
import { historyOf } from "../written-training.ts";

const { signal } = new AbortController();

function someHistory(): FoldedShardHistory {
  const act = { trainer: "alice", parameter: "w", kind: "gradient" } as const;
  const acts = Array.from({ length: 20 }, () => ({ ...act, values: [1, 2, 3, 4, 5, 6] }));
  return historyOf({ mode: "async", optimizer: "sgd", acts }).own;
}

/** The problems of a tape: codes, with the records or the message. */
async function problemsOf(own: FoldedShardHistory): Promise<unknown[]> {
  const { problems } = await verifyTape(own, signal);
  return problems.map(({ code, details }) => {
    expect(details?.["shard"]).toBe(SHARD);
    return [code, details?.["from"] ?? details?.["seq"], details?.["to"] ?? ""];
  });
}

describe("a tape", () => {
  test("that is whole has no problem, whatever of its records is kept, and neither has none", async () => {
    const own = someHistory();
    expect(await verifyTape(own, signal)).toEqual({ messages: 0, problems: [] });
    own.writeTape(1, 14);
    own.snapshot(14);
    own.firstSeq = 12;
    expect(await verifyTape(own, signal)).toEqual({ messages: 7, problems: [] });
  });

  test("with a changed bit names the message, and the records whose lines are lost", async () => {
    const own = someHistory();
    own.writeTape(1, 14);
    own.damageTape(2);
    expect(await problemsOf(own)).toEqual([
      ["BAD_CHECKSUM", 3, ""],
      ["TAPE_DAMAGED", 5, 6],
    ]);
  });

  test("without a message at its beginning, in its middle or at its end names the records", async () => {
    const own = someHistory();
    own.writeTape(3, 8);
    own.writeTape(11, 14);
    own.snapshot(18);
    expect(await problemsOf(own)).toEqual([
      ["TAPE_DAMAGED", 1, 2],
      ["TAPE_DAMAGED", 9, 10],
      ["TAPE_DAMAGED", 15, 18],
    ]);
    // An archive takes the last lines later.
    own.gapList = [{ generation: 1, firstSeq: own.lastSeq + 1, lastSeq: Number.MAX_SAFE_INTEGER }];
    expect(await problemsOf(own)).toHaveLength(2);
  });

  test("lacks no lines of records that were never written", async () => {
    const own = someHistory();
    own.writeTape(1, 8);
    own.writeTape(11, 14);
    own.snapshot(10);
    own.missing.add(9).add(10);
    expect(await problemsOf(own)).toEqual([]);
  });
});
