import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Position } from "../../protocol/index.ts";
import type { Cut } from "../points/point.ts";
import type { HistorySource } from "../source.ts";
import { recordsBetween, type Suspects } from "./suspects.ts";
import type { Judge } from "./verdict.ts";

/** Parts of an interval of time that are tried, the middle first. */
const FRACTIONS = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 7 / 8, 3 / 8, 5 / 8];

/** Differences of time below this, in milliseconds, divide nothing. */
const INTERVAL_MS_MIN = 0.001;

/**
 * Divides a span by time until at most so many records are left, or time divides it no further.
 * @throws what the judge and the source throw; the reason of the signal.
 */
export async function narrowByTime(
  source: HistorySource,
  suspects: Suspects,
  judge: Judge,
  recordsMax: number,
  signal: AbortSignal,
): Promise<Suspects> {
  let { good, bad } = suspects;
  if (recordsBetween({ good, bad }) <= recordsMax) return { good, bad };
  let [fromMs, toMs] = await timesOf(source, { good, bad }, signal);
  while (recordsBetween({ good, bad }) > recordsMax && toMs - fromMs > INTERVAL_MS_MIN) {
    const before = toMs - fromMs;
    for (const fraction of FRACTIONS) {
      signal.throwIfAborted();
      const timeMs = fromMs + fraction * before;
      const cut = await cutBetween(source, { good, bad }, timeMs);
      const leftRecords = recordsBetween({ good, bad });
      const isGood = recordsBetween({ good, bad: cut }) === 0;
      const isBad = recordsBetween({ good: cut, bad }) === 0;
      const verdict = isGood ? "good" : isBad ? "bad" : await judge(cut, leftRecords);
      if (verdict === "skip") continue;
      if (verdict === "good") [good, fromMs] = [cut, timeMs];
      else [bad, toMs] = [cut, timeMs];
      break;
    }
    if (toMs - fromMs === before) break;
  }
  return { good, bad };
}

/** Times of the first and the last record of a span. */
async function timesOf(
  source: HistorySource,
  { good, bad }: Suspects,
  signal: AbortSignal,
): Promise<[number, number]> {
  const times = await mapConcurrently([...good.keys()], async (shard) => {
    const [from, to] = [good[shard], bad[shard]];
    if (from === undefined || to === undefined || from.seq >= to.seq) return [];
    const { generation } = from;
    const first = await timeAfter(source, shard, from, signal);
    const last = await timeAfter(source, shard, { generation, seq: to.seq - 1 }, signal);
    return [first, last];
  });
  const all = times.flat();
  return [Math.min(...all), Math.max(...all)];
}

async function timeAfter(
  source: HistorySource,
  shard: number,
  after: Position,
  signal: AbortSignal,
): Promise<number> {
  for await (const [record] of source.shard(shard).read(after, after.seq + 1, signal)) {
    if (record !== undefined) return record.timeMs;
  }
  return 0;
}

/** The cut at a time, within a span. */
async function cutBetween(
  source: HistorySource,
  { good, bad }: Suspects,
  timeMs: number,
): Promise<Cut> {
  return await mapConcurrently([...good.entries()], async ([shard, from]) => {
    const to = bad[shard] ?? from;
    const found = await source.shard(shard).positionAt(timeMs);
    if (found === undefined || found.generation < from.generation) return from;
    if (found.generation > to.generation) return to;
    const seq = Math.min(Math.max(found.seq, from.seq), to.seq);
    return { generation: from.generation, seq };
  });
}
