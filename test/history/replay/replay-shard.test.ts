// Proves that a shard rebuilt at any record, from whichever snapshot, has the digest of the fold of all
// records up to it; that a damaged snapshot is passed over for an older one; and what is said where history
// does not reach back, or a record is missing.
import fc from "fast-check";
import { expect, test } from "vitest";
import { replayShard } from "../../../src/history/replay/replay-shard.ts";
import { SUBJECTS } from "../../actors/fold/journal-writer.ts";
import { failureOf } from "../failure.ts";
import type { FoldedShardHistory } from "../folded-history.ts";
import { historyOf, trainings } from "../written-training.ts";

const { signal } = new AbortController();
const ONE = { mode: "async", optimizer: "adam", acts: [] } as const;

/** A history of 30 records. */
function longHistory(): FoldedShardHistory {
  const values = [1, 2, 3, 4, 5, 6];
  const acts = Array.from({ length: 25 }, () => {
    return { trainer: "alice", parameter: "w", kind: "gradient", values } as const;
  });
  return historyOf({ ...ONE, acts }).own;
}

async function digestAt(history: FoldedShardHistory, seq: number): Promise<string> {
  const shard = await replayShard(history, { generation: 1, seq }, { subjects: SUBJECTS, signal });
  expect(shard.seq).toBe(seq);
  return shard.digest();
}

test("at any record it is the fold of the records up to it", async () => {
  await fc.assert(
    fc.asyncProperty(
      trainings,
      fc.array(fc.nat(), { maxLength: 3 }),
      fc.nat(),
      async (training, snapshots, at) => {
        const { own } = historyOf(training);
        for (const seq of snapshots) own.snapshot(seq % (own.lastSeq + 1));
        const seq = at % (own.lastSeq + 1);
        expect(await digestAt(own, seq)).toBe(own.folded(seq).digest());
      },
    ),
    { numRuns: 100 },
  );
});

test("a trimmed journal is rebuilt from its snapshots, and not before them", async () => {
  const history = longHistory();
  history.snapshot(10);
  history.snapshot(20);
  history.firstSeq = 11;
  for (const seq of [10, 11, 19, 20, 25]) {
    expect(await digestAt(history, seq)).toBe(history.folded(seq).digest());
  }
  expect(await failureOf(digestAt(history, 9))).toMatchObject({
    code: "HISTORY_LOST",
    message: expect.stringContaining("3:10"),
    details: { expected: { generation: 1, seq: 10 } },
  });
});

test("a damaged snapshot is passed over for an older one", async () => {
  const history = longHistory();
  history.snapshot(10);
  history.snapshot(20);
  history.firstSeq = 11;
  history.damageNewestPiece();
  expect(await digestAt(history, 25)).toBe(history.folded(25).digest());
  history.snapshotList.shift();
  expect((await failureOf(digestAt(history, 25))).code).toBe("SNAPSHOT_DAMAGED");
});

test("a missing record is named, unless a snapshot lies behind it", async () => {
  const history = longHistory();
  history.damaged.add(12);
  expect((await failureOf(digestAt(history, 20))).code).toBe("JOURNAL_DAMAGED");
  history.snapshot(15);
  expect(await digestAt(history, 20)).toBe(history.folded(20).digest());
});

test("progress ends with all records, and an abort ends the work with its reason", async () => {
  const history = longHistory();
  history.snapshot(10);
  const told: [number, number][] = [];
  const onProgress = (done: number, total: number): void => void told.push([done, total]);
  const to = { generation: 1, seq: 25 };
  await replayShard(history, to, { subjects: SUBJECTS, signal, onProgress });
  expect(told.at(-1)).toEqual([15, 15]);
  const reason = new Error("enough");
  const aborted = replayShard(history, to, {
    subjects: SUBJECTS,
    signal: AbortSignal.abort(reason),
  });
  expect((await failureOf(aborted)).message).toBe("enough");
});
