// Proves that a search finds the one record that made a model bad, wherever it is among the shards' records,
// whatever is skipped; and that it refuses ends that are not what they are said to be.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bisect,
  type Judge,
  narrowByTime,
  recordsBetween,
  type Verdict,
} from "../../../src/history/bisect.ts";

import type { Cut } from "../../../src/history/points.ts";
import { MemoryHistory } from "../archive/memory-history.ts";
import { failureOf } from "../failure.ts";

const { signal } = new AbortController();
const START: Cut = [0, 0].map((seq) => ({ generation: 1, seq }));

/** Two shards with so many records, stored at the same times. */
function someHistory(...counts: readonly [number, number]): { history: MemoryHistory; end: Cut } {
  const history = new MemoryHistory(2);
  counts.forEach((count, shard) => {
    history.shard(shard).push(count);
  });
  return { history, end: counts.map((seq) => ({ generation: 1, seq })) };
}

/** Finds models bad that have a record; skips cuts that `skips` says. */
function judgeOf(
  culprit: { readonly shard: number; readonly seq: number },
  skips: (cut: Cut) => boolean = () => false,
): Judge {
  return (cut): Promise<Verdict> => {
    if (skips(cut)) return Promise.resolve("skip");
    return Promise.resolve((cut[culprit.shard]?.seq ?? 0) >= culprit.seq ? "bad" : "good");
  };
}

describe("a search", () => {
  test("finds the record, wherever it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.nat(60),
        fc.nat(),
        async (first, second, at) => {
          const { history, end } = someHistory(first, second);
          const all = first + second;
          const place = at % all;
          const culprit =
            place < first ? { shard: 0, seq: place + 1 } : { shard: 1, seq: place - first + 1 };
          let judged = 0;
          const judge = judgeOf(culprit);
          const counted: Judge = (cut, left) => {
            judged += 1;
            return judge(cut, left);
          };
          const { records } = await bisect(history, { good: START, bad: end }, counted, signal);
          const position = { generation: 1, seq: culprit.seq };
          expect(records.map((record) => [record.shard, record.position])).toEqual([
            [culprit.shard, position],
          ]);
          // Both ends, and as often as a number of that size can be halved.
          expect(judged).toBeLessThanOrEqual(2 + Math.ceil(Math.log2(all)));
        },
      ),
    );
  });

  test("names the records between which all was skipped", async () => {
    const { history, end } = someHistory(20, 0);
    const skips = (cut: Cut): boolean => [9, 10, 11].includes(cut[0]?.seq ?? 0);
    const judge = judgeOf({ shard: 0, seq: 10 }, skips);
    const { records } = await bisect(history, { good: START, bad: end }, judge, signal);
    expect(records.map(({ position }) => position.seq)).toEqual([9, 10, 11, 12]);
  });

  test("refuses a good end that is bad, and a bad one that is good", async () => {
    const { history, end } = someHistory(5, 5);
    for (const verdict of ["good", "bad", "skip"] as const) {
      const judge: Judge = () => Promise.resolve(verdict);
      const search = bisect(history, { good: START, bad: end }, judge, signal);
      expect((await failureOf(search)).code).toBe("BAD_VALUE");
    }
  });

  test("refuses ends that are not in order, or of two generations", async () => {
    const { history, end } = someHistory(5, 5);
    const judge = judgeOf({ shard: 0, seq: 1 });
    const later = START.map((position) => ({ ...position, generation: 2 }));
    for (const ends of [
      { good: end, bad: START },
      { good: START, bad: later },
    ]) {
      expect((await failureOf(bisect(history, ends, judge, signal))).code).toBe("BAD_VALUE");
    }
  });
});

test("time narrows a long history until few records are left, and never past the record", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 3, max: 20 }),
      async (seq, most) => {
        const { history, end } = someHistory(200, 100);
        const judge = judgeOf({ shard: 0, seq });
        const { good, bad } = await narrowByTime(
          history,
          { good: START, bad: end },
          judge,
          most,
          signal,
        );
        expect(recordsBetween({ good, bad })).toBeLessThanOrEqual(most);
        expect(good[0]?.seq).toBeLessThan(seq);
        expect(bad[0]?.seq).toBeGreaterThanOrEqual(seq);
      },
    ),
    { numRuns: 40 },
  );
});
