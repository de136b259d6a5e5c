import { blameElement, type ElementChange, locateElement, parseElement } from "../history/blame.ts";
import { examineRecord, findRecord } from "../history/examine-record.ts";
import { type Cut, parsePoint, type ResolvedPoint } from "../history/points.ts";
import { readUpdates, resolveRange } from "../history/read-updates.ts";
import { replayModel } from "../history/replay/replayer.ts";
import { ThreadPool } from "../history/replay/thread-pool.ts";
import { ChartCollector, chartEntry } from "../history/reports/chart.ts";
import {
  blameEntry,
  changeEntry,
  examinedRecord,
  jsonNumber,
  pointEntry,
} from "../history/reports/json-entries.ts";
import { changesBetween, summarizeModel } from "../history/reports/model-summary.ts";
import { parameterHistory } from "../history/reports/parameter-history.ts";
import { updateEntry } from "../history/reports/update-entry.ts";
import { resolvePoint } from "../history/resolve-point.ts";
import { type HistoryPlace, type HistorySource, recordAt } from "../history/source.ts";
import { mismatch, PserverError } from "../protocol/index.ts";
import { queryValues } from "./query.ts";

// What the page shows of a job's past, besides its log: each is what a command prints, or is made of it. Some fold
// journals again, which takes processor time and memory of this process: one of these is answered at a time.

/** Changes of an element that are answered: the largest. */
const CHANGES_MAX = 100;

/** The history of a job, for one request. */
interface HistoryRequest {
  readonly source: HistorySource;
  /** Where it is, for threads that open it again. */
  readonly place: HistoryPlace;
  readonly query: URLSearchParams;
  readonly signal: AbortSignal;
}

/** Something that can be asked of a history. */
export interface HistoryDetail {
  /** Whether journals are folded for it. */
  readonly folds: boolean;
  readonly answer: (request: HistoryRequest) => Promise<unknown>;
}

/** What can be asked of a history, by the name that follows the job's in the path. */
export const HISTORY_DETAILS: Readonly<Record<string, HistoryDetail>> = {
  span: { folds: false, answer: answerSpan },
  last: { folds: false, answer: answerLast },
  chart: { folds: false, answer: answerChart },
  update: { folds: true, answer: answerUpdate },
  model: { folds: true, answer: answerModel },
  parameter: { folds: true, answer: answerParameter },
  blame: { folds: true, answer: answerBlame },
};

/** Answers between which times the model can be rebuilt: `{from, to}` in milliseconds since 1970, or null. */
async function answerSpan({ source, query, signal }: HistoryRequest): Promise<unknown> {
  queryValues(query, []);
  let from = 0;
  let to = 0;
  for (let shard = 0; shard < source.shards; shard++) {
    const history = source.shard(shard);
    const spans = (await history.spans()).filter(({ firstSeq, lastSeq }) => firstSeq <= lastSeq);
    const [first, last] = [spans.at(0), spans.at(-1)];
    if (first === undefined || last === undefined) continue;
    const { generation, firstSeq: seq } = first;
    const oldest = await recordAt(history, { generation, seq }, signal);
    const newest = await recordAt(history, { ...last, seq: last.lastSeq }, signal);
    from = Math.max(from, oldest?.timeMs ?? 0);
    to = Math.max(to, newest?.timeMs ?? 0);
  }
  return to === 0 ? null : { from, to };
}

/** Answers the last updates, up to `limit`, as the log has them. */
async function answerLast({ source, query, signal }: HistoryRequest): Promise<unknown> {
  const given = queryValues(query, ["limit", "param", "trainer"]);
  const last = wholeNumber(given.limit ?? "100", "limit", 1_000);
  const range = await resolveRange(source, { kind: "start" }, { kind: "now" }, signal);
  const filter = { parameter: given.param, trainer: given.trainer };
  const updates: unknown[] = [];
  const damage: string[] = [];
  const onDamage = ({ message }: PserverError): unknown => damage.push(message);
  for await (const events of readUpdates(source, { ...range, ...filter, last, signal, onDamage })) {
    updates.push(...events.map(updateEntry));
  }
  return { updates, damage };
}

/** Answers the series of `value`, a name in notes or `norm`, as `pserver plot --json` prints them. */
async function answerChart({ source, query, signal }: HistoryRequest): Promise<unknown> {
  const given = queryValues(query, ["value", "by", "param", "trainer"]);
  const by = given.by === "step" ? "step" : "time";
  const collector = new ChartCollector({ title: given.value ?? "loss", by, scale: "linear" });
  const range = await resolveRange(source, { kind: "start" }, { kind: "now" }, signal);
  const filter = { parameter: given.param, trainer: given.trainer };
  const damage: string[] = [];
  const onDamage = ({ message }: PserverError): unknown => damage.push(message);
  for await (const events of readUpdates(source, { ...range, ...filter, signal, onDamage })) {
    for (const event of events) collector.add(event);
  }
  return { ...chartEntry(collector.chart()), damage };
}

/** Answers everything about one update, named by `at`, as `pserver show --json` prints it. */
async function answerUpdate({ source, query, signal }: HistoryRequest): Promise<unknown> {
  const { at = "" } = queryValues(query, ["at"]);
  const point = parsePoint(at, Date.now());
  if (point.kind !== "position" && point.kind !== "update") {
    const expected = "one update, TRAINER/SESSION:NUMBER or SHARD:SEQ";
    throw mismatch("BAD_VALUE", "at", expected, JSON.stringify(at));
  }
  const found = await findRecord(source, point, signal);
  return examinedRecord(await examineRecord(source, found, signal));
}

/**
 * Answers what the model was like at the point `at`: of each parameter its norm, ends and histogram, and how it differs
 * from what it is now.
 */
async function answerModel({ source, place, query, signal }: HistoryRequest): Promise<unknown> {
  const { at = "now" } = queryValues(query, ["at"]);
  const point = await resolvePoint(source, parsePoint(at, Date.now()), signal);
  const now = await resolvePoint(source, { kind: "now" }, signal);
  const pool = ThreadPool.start(place, source.shards, signal);
  try {
    const model = await replayModel(pool, point.cut);
    const parameters = [];
    for await (const summary of summarizeModel(model, signal)) parameters.push(summary);
    const isNow = isSameCut(point, now);
    const other = isNow ? model : await replayModel(pool, now.cut);
    const changes = await changesBetween(model, other, signal);
    const changeOf = new Map(changes.map(({ name, ...change }) => [name, change]));
    return {
      point: pointEntry(point),
      parameters: parameters.map(({ norm, min, max, ...summary }) => ({
        ...summary,
        ...{ norm: jsonNumber(norm), min: jsonNumber(min), max: jsonNumber(max) },
        toNow: changeOf.get(summary.name),
      })),
    };
  } finally {
    await pool.close();
  }
}

function isSameCut(a: Pick<ResolvedPoint, "cut">, b: Pick<ResolvedPoint, "cut">): boolean {
  return JSON.stringify(a.cut) === JSON.stringify(b.cut);
}

/** Answers the norm and the ends of the values of `name`, as they changed. */
async function answerParameter({ source, query, signal }: HistoryRequest): Promise<unknown> {
  const { name } = queryValues(query, ["name"]);
  if (name === undefined) throw mismatch("BAD_VALUE", "name", "a parameter", "none");
  const samples = await parameterHistory(source, name, await cutNow(source, signal), signal);
  return {
    name,
    samples: samples.map(({ norm, ...sample }) => ({ ...sample, norm: jsonNumber(norm) })),
  };
}

/** Answers which updates moved the element `of`, and how much: the largest changes, in their order, and the sums. */
async function answerBlame({ source, query, signal }: HistoryRequest): Promise<unknown> {
  const { of = "" } = queryValues(query, ["of"]);
  const until = await cutNow(source, signal);
  const element = await locateElement(source, until, parseElement(of), signal);
  let largest: ElementChange[] = [];
  let leftOut = 0;
  const onChange = (change: ElementChange): void => {
    largest.push(change);
    if (largest.length < 2 * CHANGES_MAX) return;
    leftOut += largest.length - CHANGES_MAX;
    largest = largestOf(largest);
  };
  const blame = await blameElement(source, element, { until, signal, onChange });
  leftOut += Math.max(0, largest.length - CHANGES_MAX);
  return { ...blameEntry(blame), largest: largestOf(largest).map(changeEntry), leftOut };
}

/** Returns the largest changes, in the order in which they were. */
function largestOf(changes: readonly ElementChange[]): ElementChange[] {
  if (changes.length <= CHANGES_MAX) return [...changes];
  const sizes = changes.map(({ change }) => Math.abs(Number(change ?? Number.POSITIVE_INFINITY)));
  const least = [...sizes].sort((a, b) => b - a)[CHANGES_MAX - 1] ?? 0;
  return changes.filter((_, i) => (sizes[i] ?? 0) >= least).slice(0, CHANGES_MAX);
}

async function cutNow(source: HistorySource, signal: AbortSignal): Promise<Cut> {
  return (await resolvePoint(source, { kind: "now" }, signal)).cut;
}

function wholeNumber(text: string, name: string, max: number): number {
  const number = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= max) return number;
  throw mismatch("BAD_VALUE", name, `a whole number from 1 to ${max}`, JSON.stringify(text));
}

/** Lets one request at a time fold journals. */
export class OneAtATime {
  #isTaken = false;

  /** Runs `work`. @throws BUSY if other work runs. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isTaken) {
      throw new PserverError("BUSY", "another request for the past is being answered; ask again");
    }
    this.#isTaken = true;
    try {
      return await work();
    } finally {
      this.#isTaken = false;
    }
  }
}
