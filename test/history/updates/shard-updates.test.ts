// Proves that the updates of a shard are the same ones whether its tape is whole, has a beginning, a middle
// or an end only, or is absent: what it has no lines of is folded from the journal.
import fc from "fast-check";
import { expect, test } from "vitest";
import { JournalUpdates } from "../../../src/history/updates/journal-updates.ts";
import { shardUpdates } from "../../../src/history/updates/shard-updates.ts";
import { SUBJECTS } from "../../actors/fold/journal-writer.ts";
import type { FoldedHistory } from "../folded-history.ts";
import { historyOf, trainings } from "../written-training.ts";

const { signal } = new AbortController();

async function listed({ own }: FoldedHistory, afterSeq: number, toSeq: number): Promise<object[]> {
  const journal = new JournalUpdates(own, SUBJECTS, signal);
  const after = { generation: afterSeq === 0 ? 0 : 1, seq: afterSeq };
  const span = { after, to: { generation: 1, seq: toSeq }, fromMs: 0 };
  const found: object[] = [];
  for await (const events of shardUpdates(own, journal, span, signal)) {
    for (const { block, ...event } of events) {
      const { statistics, ...rest } = block ?? {};
      // The tape keeps norm and mean as float32.
      const { norm: _norm, mean: _mean, ...exact } = statistics ?? {};
      found.push({ ...event, block: rest, exact });
    }
  }
  return found;
}

test("a tape with gaps at its beginning, middle and end leaves nothing out", async () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const shares = fc.tuple(share, share, share, share);
  const property = fc.asyncProperty(trainings, shares, async (training, ends) => {
    const [plain, taped] = [historyOf(training), historyOf(training)];
    const { lastSeq } = plain.own;
    const [a = 1, b = 1, c = 1, d = 1] = ends
      .map((end) => 1 + Math.floor(end * (lastSeq - 1)))
      .sort((one, other) => one - other);
    taped.own.writeTape(a, b);
    if (c > b) taped.own.writeTape(c, d);
    expect(await listed(taped, 0, lastSeq)).toEqual(await listed(plain, 0, lastSeq));
    expect(await listed(taped, a, c)).toEqual(await listed(plain, a, c));
  });
  await fc.assert(property, { numRuns: 25 });
});
