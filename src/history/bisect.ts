import { mapConcurrently } from "../actors/concurrent.ts";
import { DTYPES, type Position, PserverError, toNumbers } from "../protocol/index.ts";
import { showPosition } from "../protocol/messages/position.ts";
import { viewElements } from "./compare-models.ts";
import type { Cut } from "./points.ts";
import type { ReplayedModel, ReplayedParameter } from "./replay/replayed-model.ts";
import { type HistorySource, positionAt, recordAt, takeInventory } from "./source.ts";

/** Two cuts between which a model went bad: good at the first, bad at the other. */
export interface Suspects {
  readonly good: Cut;
  readonly bad: Cut;
}

/** Returns the number of records between two cuts. */
export function recordsBetween({ good, bad }: Suspects): number {
  return good.reduce((sum, { seq }, shard) => sum + Math.max(0, (bad[shard]?.seq ?? 0) - seq), 0);
}

/** Parts of an interval of time that are tried, the middle first. */
const FRACTIONS = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 7 / 8, 3 / 8, 5 / 8];

/** Shortest interval of time, in milliseconds, that is divided. */
const INTERVAL_MS_MIN = 0.001;

/**
 * Divides a span by time until at most so many records are left, or until time divides it no further.
 * @throws errors of the judge and the source; the reason of the signal.
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

/** Returns the times of the first and the last record of a span. */
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
  { generation, seq }: Position,
  signal: AbortSignal,
): Promise<number> {
  const record = await recordAt(source.shard(shard), { generation, seq: seq + 1 }, signal);
  return record?.timeMs ?? 0;
}

/** Returns the cut at a time, within a span. */
async function cutBetween(
  source: HistorySource,
  { good, bad }: Suspects,
  timeMs: number,
): Promise<Cut> {
  return await mapConcurrently([...good.entries()], async ([shard, from]) => {
    const to = bad[shard] ?? from;
    const history = source.shard(shard);
    const found = await positionAt(history, await takeInventory(history), timeMs);
    if (found === undefined || found.generation < from.generation) return from;
    if (found.generation > to.generation) return to;
    const seq = Math.min(Math.max(found.seq, from.seq), to.seq);
    return { generation: from.generation, seq };
  });
}

/** Shards that are read at one time. */
const SHARDS_AT_ONCE = 4;

/** A record between the two cuts: where it is, and when the broker stored it. */
export interface OrderedRecord {
  readonly shard: number;
  readonly position: Position;
  readonly timeMs: number;
}

/** The records of all shards between two cuts, in the order of their times. */
class OrderedRecords {
  readonly records: readonly OrderedRecord[];
  readonly #start: Cut;

  private constructor(start: Cut, records: readonly OrderedRecord[]) {
    this.#start = start;
    this.records = records;
  }

  /** Reads the times of the records; holds some ten bytes of each. @throws errors of the source. */
  static async read(
    source: HistorySource,
    start: Cut,
    end: Cut,
    signal: AbortSignal,
  ): Promise<OrderedRecords> {
    const read = async (shard: number): Promise<OrderedRecord[]> => {
      const [after, to] = [start[shard], end[shard]];
      const records: OrderedRecord[] = [];
      if (after === undefined || to === undefined) return records;
      for await (const batch of source.shard(shard).read(after, to.seq, signal)) {
        for (const { seq, timeMs } of batch) {
          records.push({ shard, position: { generation: to.generation, seq }, timeMs });
        }
      }
      return records;
    };
    const all = await mapConcurrently([...start.keys()], read, SHARDS_AT_ONCE);
    const inOrder = (a: OrderedRecord, b: OrderedRecord): number =>
      a.timeMs - b.timeMs || a.shard - b.shard || a.position.seq - b.position.seq;
    return new OrderedRecords(start, all.flat().sort(inOrder));
  }

  /** Returns the cut after the first `count` records. */
  cutAfter(count: number): Cut {
    const cut = [...this.#start];
    for (const { shard, position } of this.records.slice(0, count)) cut[shard] = position;
    return cut;
  }
}

/** Most records whose times are held at one time; more are first divided by time alone. */
const RECORDS_MAX = 200_000;

/**
 * Result of a search: the first bad record, or several of which one is the first bad one, if they could not be told
 * apart.
 */
export type BisectResult = Suspects & {
  readonly records: readonly OrderedRecord[];
};

/**
 * Searches for the record that made a model bad, by judging models between a good and a bad cut. Records of all
 * shards count in the order in which the broker stored them.
 * @throws BAD_VALUE if the cuts are not in order or of two generations of a journal, or if the judge finds the good
 * one bad or the bad one good; errors of the judge and the source.
 */
export async function bisect(
  source: HistorySource,
  suspects: Suspects,
  judge: Judge,
  signal: AbortSignal,
): Promise<BisectResult> {
  checkOrder(suspects);
  await checkEnds(suspects, judge);
  const { good, bad } = await narrowByTime(source, suspects, judge, RECORDS_MAX, signal);
  const ordered = await OrderedRecords.read(source, good, bad, signal);
  const { low, high } = await search(ordered, judge, signal);
  return {
    good: ordered.cutAfter(low),
    bad: ordered.cutAfter(high),
    records: ordered.records.slice(low, high),
  };
}

/**
 * Halves the range of records until one is left: the model after `low` records is good, the one after `high` is bad.
 */
async function search(
  ordered: OrderedRecords,
  judge: Judge,
  signal: AbortSignal,
): Promise<{ low: number; high: number }> {
  let [low, high] = [0, ordered.records.length];
  const skipped = new Set<number>();
  for (;;) {
    signal.throwIfAborted();
    const next = nearestTo(Math.floor((low + high) / 2), low, high, skipped);
    if (next === undefined) return { low, high };
    const verdict = await judge(ordered.cutAfter(next), high - low);
    if (verdict === "good") low = next;
    else if (verdict === "bad") high = next;
    else skipped.add(next);
  }
}

/** Returns the number between `low` and `high`, both excluded, that is nearest to the middle and was not skipped. */
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

/** Whether a model's float parameters hold finite values only. With `names`, only these parameters are checked. */
export async function isFiniteModel(
  model: ReplayedModel,
  names: readonly string[] | undefined,
): Promise<boolean> {
  for (const parameter of model.parameters) {
    if (names !== undefined && !names.includes(parameter.name)) continue;
    if (!(await isFiniteParameter(model, parameter))) return false;
  }
  return true;
}

async function isFiniteParameter(
  model: ReplayedModel,
  parameter: ReplayedParameter,
): Promise<boolean> {
  const { dtype } = parameter;
  if (!DTYPES[dtype].float) return true;
  for await (const chunk of model.chunks(parameter)) {
    const data = toNumbers(dtype, viewElements(dtype, chunk));
    // Not `every`, which takes a call for each of millions of elements.
    for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) return false;
  }
  return true;
}

/** Whether the model at a cut is as it should be; `skip` if the judge cannot tell. */
export type Verdict = "good" | "bad" | "skip";

/** Judges the model at a cut. `leftRecords`: records that are still in question. */
export type Judge = (cut: Cut, leftRecords: number) => Promise<Verdict>;
