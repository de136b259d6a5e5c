import { PserverError } from "../../protocol/index.ts";
import { showPosition } from "../history-lost.ts";
import type { HistorySource } from "../source.ts";
import { narrowByTime } from "./narrow-by-time.ts";
import { type LineRecord, RecordLine } from "./record-line.ts";
import { recordsBetween, type Suspects } from "./suspects.ts";
import type { Judge } from "./verdict.ts";

/** Records whose times are held at one time; more are first divided by time alone. */
const LINE_MAX = 200_000;

/** What a search found: the first bad record, or those of which it is one, if none could be told from another. */
export type BisectResult = Suspects & {
  readonly records: readonly LineRecord[];
};

/**
 * Searches for the record that made a model bad, by judging models between a good and a bad cut. Records of
 * all shards count in the order in which the broker stored them.
 * @throws BAD_VALUE if the cuts are not in order or of two generations of a journal, or if the judge finds the
 * good one bad or the bad one good; what the judge and the source throw.
 */
export async function bisect(
  source: HistorySource,
  suspects: Suspects,
  judge: Judge,
  signal: AbortSignal,
): Promise<BisectResult> {
  checkOrder(suspects);
  await checkEnds(suspects, judge);
  const { good, bad } = await narrowByTime(source, suspects, judge, LINE_MAX, signal);
  const line = await RecordLine.read(source, good, bad, signal);
  const { low, high } = await search(line, judge, signal);
  return {
    good: line.cutAfter(low),
    bad: line.cutAfter(high),
    records: line.records.slice(low, high),
  };
}

/** Halves the line; the model after `low` records is good, that after `high` bad. */
async function search(
  line: RecordLine,
  judge: Judge,
  signal: AbortSignal,
): Promise<{ low: number; high: number }> {
  let [low, high] = [0, line.records.length];
  const skipped = new Set<number>();
  for (;;) {
    signal.throwIfAborted();
    const next = nearestTo(Math.floor((low + high) / 2), low, high, skipped);
    if (next === undefined) return { low, high };
    const verdict = await judge(line.cutAfter(next), high - low);
    if (verdict === "good") low = next;
    else if (verdict === "bad") high = next;
    else skipped.add(next);
  }
}

/** The number between `low` and `high`, both excluded, nearest to the middle that was not skipped. */
function nearestTo(
  middle: number,
  low: number,
  high: number,
  skipped: ReadonlySet<number>,
): number | undefined {
  for (let away = 0; away < high - low; away++) {
    for (const at of [middle - away, middle + away]) {
      if (at > low && at < high && !skipped.has(at)) return at;
    }
  }
  return undefined;
}

function checkOrder({ good, bad }: Suspects): void {
  for (const [shard, from] of good.entries()) {
    const to = bad[shard];
    if (to === undefined) continue;
    const [a, b] = [showPosition(shard, from), showPosition(shard, to)];
    if (from.generation !== to.generation) {
      const text = `expected a good and a bad point of one generation of each journal; received ${a} and ${b}`;
      throw new PserverError("BAD_VALUE", text, { shard });
    }
    if (from.seq > to.seq) {
      const text = `expected the good point before the bad one; received ${a} and ${b}`;
      throw new PserverError("BAD_VALUE", text, { shard });
    }
  }
}

async function checkEnds({ good, bad }: Suspects, judge: Judge): Promise<void> {
  const leftRecords = recordsBetween({ good, bad });
  for (const [cut, expected] of [
    [good, "good"],
    [bad, "bad"],
  ] as const) {
    const verdict = await judge(cut, leftRecords);
    if (verdict === expected) continue;
    const text = `the model at the ${expected} point: expected to be judged ${expected}; received ${verdict}`;
    throw new PserverError("BAD_VALUE", text, { expected, received: verdict });
  }
}
