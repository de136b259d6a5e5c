import { mapConcurrently } from "../actors/concurrent.ts";
import { readable, readRecordHeader, readRecordMessage } from "../actors/fold/journal-record.ts";
import type { Shard } from "../actors/fold/shard.ts";
import { leftOutRecords, type UpdateEvent } from "../actors/journal/describe-record.ts";
import {
  comparePositions,
  type ErrorCode,
  ensureError,
  JobSubjects,
  NOTE_SHARD,
  type Position,
  PserverError,
  parseNote,
} from "../protocol/index.ts";
import { showPosition } from "../protocol/messages/position.ts";
import { type Cut, formatPoint, formatTime, type Point, type ResolvedPoint } from "./points.ts";
import { foldRecords, shardAt } from "./replay/replay-shard.ts";
import {
  basesOf,
  checkShard,
  type HistorySource,
  historyLost,
  type Inventory,
  type JournalSpan,
  newestOf,
  oldestOf,
  positionAt,
  recordAt,
  type ShardHistory,
  spanWith,
  type TimedRecord,
  takeInventory,
} from "./source.ts";
import { type SkippedRecords, tapeUpdates } from "./update-stream.ts";

/** A record that was found. */
export interface RecordMatch {
  readonly shard: number;
  readonly position: Position;
  /** When the broker stored it; rounded to microseconds if only the tape has it. */
  readonly timeMs: number;
}

/** What to search for, as lines of the tape and as records. */
export interface RecordSearch {
  readonly isEvent: (event: UpdateEvent) => boolean;
  readonly isRecord: (record: TimedRecord) => boolean;
}

const BEGINNING: Position = { generation: 0, seq: 0 };

const END: Position = { generation: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/** Errors of a tape that cannot be read: damaged, or written by a newer program. */
const UNREADABLE: ReadonlySet<ErrorCode> = new Set([
  "BAD_MESSAGE",
  "BAD_CHECKSUM",
  "BAD_VERSION",
  "BAD_ARCHIVE",
]);

/**
 * Searches a shard in the order of its journals, without a fold: in the tape, and in the journal for records that
 * have no line there, or for all if the tape cannot be read. Ends at the first match, or with `isLast` returns the
 * last one.
 * @throws errors of the source; the reason of the signal.
 */
export async function searchShard(
  history: ShardHistory,
  wanted: RecordSearch,
  isLast: boolean,
  signal: AbortSignal,
): Promise<RecordMatch | undefined> {
  const spans = await history.spans();
  const all = { after: BEGINNING, to: END, wanted };
  const found = await unlessUnreadable(
    () => pickMatch(matchesIn(history, spans, wanted, signal), isLast),
    () => pickMatch(recordsIn(history, spans, all, signal), isLast),
  );
  return found && (await withRecordTime(history, spans, found, signal));
}

/**
 * Whether the tape of a shard, with the records that are kept, tells of every record from the shard's first one on.
 * @throws errors of the source.
 */
async function tapeIsWhole(history: ShardHistory, signal: AbortSignal): Promise<boolean> {
  const spans = await history.spans();
  const isKept = ({ after, to: { generation, seq } }: SkippedRecords): boolean => {
    const firstSeq = after.generation === generation ? after.seq + 1 : 1;
    const span = spanWith(spans, { generation, seq: firstSeq });
    return seq < firstSeq || (span !== undefined && seq <= span.lastSeq);
  };
  const isWhole = async (): Promise<boolean> => {
    let first: number | undefined;
    let last = BEGINNING;
    const leftOut = new LeftOutRanges();
    for await (const part of tapeUpdates(history, BEGINNING, END, 0, signal)) {
      const { covered, skipped, events } = part;
      if (skipped !== undefined && !isKept(skipped)) return false;
      if (!events.flatMap((event) => leftOut.before(event)).every(isKept)) return false;
      last = covered;
      first ??= covered.generation;
    }
    return first === 1 && leftOut.atEnd(last).every(isKept);
  };
  return await unlessUnreadable(isWhole, () => Promise.resolve(false));
}

async function pickMatch(
  matches: AsyncIterable<RecordMatch>,
  isLast: boolean,
): Promise<RecordMatch | undefined> {
  let found: RecordMatch | undefined;
  for await (const match of matches) {
    found = match;
    if (!isLast) break;
  }
  return found;
}

/** Returns the result of `read`, which reads a tape; that of `substitute` if the tape cannot be read. */
async function unlessUnreadable<Result>(
  read: () => Promise<Result>,
  substitute: () => Promise<Result>,
): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    if (!UNREADABLE.has(ensureError(error).code)) throw error;
    return await substitute();
  }
}

async function* matchesIn(
  history: ShardHistory,
  spans: readonly JournalSpan[],
  wanted: RecordSearch,
  signal: AbortSignal,
): AsyncGenerator<RecordMatch> {
  let covered = BEGINNING;
  const leftOut = new LeftOutRanges();
  for await (const part of tapeUpdates(history, BEGINNING, END, 0, signal)) {
    const { skipped } = part;
    if (skipped !== undefined) {
      yield* recordsIn(history, spans, { ...skipped, wanted }, signal);
    }
    covered = part.covered;
    for (const event of part.events) {
      for (const range of leftOut.before(event)) {
        yield* recordsIn(history, spans, { ...range, wanted }, signal);
      }
      if (!wanted.isEvent(event)) continue;
      const { shard, generation, seq, timeMs } = event;
      yield { shard, position: { generation, seq }, timeMs };
    }
  }
  for (const range of leftOut.atEnd(covered)) {
    yield* recordsIn(history, spans, { ...range, wanted }, signal);
  }
  yield* recordsIn(history, spans, { after: covered, to: END, wanted }, signal);
}

/**
 * Finds the ranges of a tape in which trainers' records have no lines although the tape covers them: lines `left-out`
 * tell of them, but not always of the last ones.
 */
class LeftOutRanges {
  /** The last record that was told, of each trainer whose lines do not go on yet. */
  readonly #told: Map<string | undefined, Position> = new Map();

  /** Returns the ranges that end with an event; none for most. */
  before(event: UpdateEvent): SkippedRecords[] {
    const { trainer, generation, seq } = event;
    const told = this.#told.get(trainer);
    const leftOut = leftOutRecords(event);
    if (leftOut !== undefined) {
      this.#told.set(trainer, { generation, seq });
      const after = told ?? { generation, seq: leftOut.fromSeq - 1 };
      return [{ after, to: { generation, seq } }];
    }
    if (told === undefined) return [];
    this.#told.delete(trainer);
    return [{ after: told, to: { generation, seq } }];
  }

  /** Returns the ranges that are open where the tape ends. */
  atEnd(covered: Position): SkippedRecords[] {
    return [...this.#told.values()].map((after) => ({ after, to: covered }));
  }
}

/** Yields the records that match, after a position up to another one. */
async function* recordsIn(
  history: ShardHistory,
  spans: readonly JournalSpan[],
  { after, to, wanted }: { after: Position; to: Position; wanted: RecordSearch },
  signal: AbortSignal,
): AsyncGenerator<RecordMatch> {
  for (const { generation, firstSeq, lastSeq } of spans) {
    if (generation < after.generation || generation > to.generation) continue;
    const before = firstSeq - 1;
    const seq = generation === after.generation ? Math.max(before, after.seq) : before;
    const toSeq = generation === to.generation ? Math.min(lastSeq, to.seq) : lastSeq;
    if (seq >= toSeq) continue;
    for await (const batch of history.read({ generation, seq }, toSeq, signal)) {
      for (const record of batch.filter(wanted.isRecord)) {
        const position = { generation, seq: record.seq };
        yield { shard: history.shard, position, timeMs: record.timeMs };
      }
    }
  }
}

/** Returns a match with the time of its record as the broker tells it, if the record is still kept. */
async function withRecordTime(
  history: ShardHistory,
  spans: readonly JournalSpan[],
  found: RecordMatch,
  signal: AbortSignal,
): Promise<RecordMatch> {
  if (spanWith(spans, found.position) === undefined) return found;
  try {
    const record = await recordAt(history, found.position, signal);
    return record === undefined ? found : { ...found, timeMs: record.timeMs };
  } catch (error) {
    // The record was trimmed since.
    if (ensureError(error).code !== "HISTORY_LOST") throw error;
    return found;
  }
}

/** Name of the entry that names a note. */
const MARK_ENTRY = "mark";

/**
 * Finds the newest note of this name, in all that is kept of journal and tape.
 * @throws BAD_VALUE if there is none; errors of the source; the reason of the signal.
 */
export async function findMark(
  source: HistorySource,
  name: string,
  signal: AbortSignal,
): Promise<RecordMatch> {
  const subjects = new JobSubjects(source.job);
  const wanted = {
    isEvent: ({ note }: UpdateEvent) => note?.[MARK_ENTRY] === name,
    isRecord: (record: TimedRecord) => isNamed(subjects, record, name),
  };
  const found = await searchShard(source.shard(NOTE_SHARD), wanted, true, signal);
  if (found !== undefined) return found;
  const text = `point mark:${name}: expected a note whose entry "${MARK_ENTRY}" is ${JSON.stringify(name)}; found none`;
  throw new PserverError("BAD_VALUE", text, { received: name });
}

function isNamed(subjects: JobSubjects, { subject, payload }: TimedRecord, name: string): boolean {
  if (!subject.endsWith(".note")) return false;
  if (readable(() => subjects.parseLog(subject))?.by !== "note") return false;
  const message = readRecordMessage(payload);
  const record = message && readable(() => parseNote(message.fields));
  return record?.note[MARK_ENTRY] === name;
}

/**
 * Finds the position of the record that closed a step in a shard. Folds from the newest snapshot before it.
 * @throws HISTORY_LOST if the step closed before what is kept, BAD_VALUE if it has not closed; errors of the source;
 * the reason of the signal.
 */
export async function findStep(
  history: ShardHistory,
  inventory: Inventory,
  job: string,
  step: number,
  signal: AbortSignal,
): Promise<Position> {
  const subjects = new JobSubjects(job);
  const newest = newestOf(inventory);
  const bases = basesOf(inventory).filter(({ generation }) => generation === newest?.generation);
  for (const base of bases.reverse()) {
    const shard = await shardAt(history, base, subjects);
    if (shard.steps.closed >= step) continue;
    const { generation } = base;
    const to = { generation, seq: newest?.seq ?? shard.seq };
    return { generation, seq: await foldUntilClosed(shard, history, to, step, signal) };
  }
  throw historyLost(inventory.shard, `step:${step}`, oldestOf(inventory));
}

async function foldUntilClosed(
  shard: Shard,
  history: ShardHistory,
  to: Position,
  step: number,
  signal: AbortSignal,
): Promise<number> {
  const reached = new AbortController();
  let closedAt: number | undefined;
  const after = (): void => {
    if (closedAt !== undefined || shard.steps.closed < step) return;
    closedAt = shard.seq;
    reached.abort();
  };
  const either = AbortSignal.any([signal, reached.signal]);
  await foldRecords(shard, history, to, { signal: either, visitor: { after } }).catch(
    (error: unknown) => {
      if (closedAt === undefined) throw error;
    },
  );
  if (closedAt !== undefined) return closedAt;
  const text = `point step:${step}: it has not closed in shard ${history.shard}; the last one is ${shard.steps.closed}`;
  throw new PserverError("BAD_VALUE", text, { expected: shard.steps.closed, received: step });
}

/** A point that names an update of a trainer. */
export type UpdatePoint = Extract<Point, { kind: "update" }>;

/**
 * Finds the first record with the number of an update, in all that is kept of journals and tape; repeated ones follow
 * it.
 * @throws HISTORY_LOST if none is kept but some records are not, BAD_VALUE if there has never been one, if several
 * shards have that number and the point names none of them; errors of the source.
 */
export async function findUpdate(
  source: HistorySource,
  point: UpdatePoint,
  signal: AbortSignal,
): Promise<RecordMatch> {
  const { shard } = point;
  if (shard !== undefined) checkShard(source, shard);
  const shards = shard === undefined ? [...Array(source.shards).keys()] : [shard];
  const prefix = trainerPrefix(source.job, point.trainer);
  const find = (number: number) =>
    searchShard(source.shard(number), wantedOf(point, prefix(number)), false, signal);
  const searched = await mapConcurrently(shards, find, SHARDS_AT_ONCE);
  const found = searched.filter((each) => each !== undefined);
  const [first] = found;
  if (first === undefined) throw await notFound(source, shards, point, signal);
  if (found.length === 1) return first;
  const forms = found.map((each) => formatPoint({ ...point, shard: each.shard }));
  throw new PserverError(
    "BAD_VALUE",
    `point ${formatPoint(point)}: several shards have this number; expected one of ${forms.join(", ")}`,
    { expected: forms, received: formatPoint(point) },
  );
}

function wantedOf({ trainer, session, n }: UpdatePoint, prefix: string): RecordSearch {
  return {
    isEvent: (event) => event.trainer === trainer && event.session === session && event.n === n,
    isRecord: (record) => hasNumber(record, prefix, session, n),
  };
}

function hasNumber(record: TimedRecord, prefix: string, session: number, n: number): boolean {
  if (!record.subject.startsWith(prefix)) return false;
  const head = readRecordHeader(record.payload);
  return head?.session === session && head.n === n;
}

/** Returns the beginning of the subjects of a trainer's records, by shard. */
function trainerPrefix(job: string, trainer: string): (shard: number) => string {
  const subjects = new JobSubjects(job);
  return (shard) => {
    const clock = subjects.clock(shard, trainer);
    return clock.slice(0, clock.lastIndexOf(".") + 1);
  };
}

async function notFound(
  source: HistorySource,
  shards: readonly number[],
  point: UpdatePoint,
  signal: AbortSignal,
): Promise<PserverError> {
  const wholes = await mapConcurrently(shards, async (shard) => {
    const [first] = await source.shard(shard).spans();
    const isWhole = first?.generation === 1 && first.firstSeq === 1;
    return isWhole || (await tapeIsWhole(source.shard(shard), signal));
  });
  const isWhole = wholes.every((each) => each);
  const text = `point ${formatPoint(point)}: no kept record has this number`;
  return new PserverError(isWhole ? "BAD_VALUE" : "HISTORY_LOST", text, {
    received: formatPoint(point),
  });
}

/** A time shorter than that between any two records, in milliseconds. */
const MOMENT_MS = 0.001;

/**
 * Returns when the broker stored the record at a position, in milliseconds since 1970. If that record is gone,
 * returns a time before the next one: that of the snapshot at the position, or a moment before the next record.
 * Undefined if none of these is known.
 */
async function timeOfPosition(
  history: ShardHistory,
  inventory: Inventory,
  { generation, seq }: Position,
  signal: AbortSignal,
): Promise<number | undefined> {
  const own = await recordTime(history, inventory, { generation, seq }, signal);
  if (own !== undefined) return own;
  const next = await recordTime(history, inventory, { generation, seq: seq + 1 }, signal);
  const times = inventory.snapshots
    .filter(({ manifest }) => manifest.generation === generation && manifest.seq === seq)
    .map(({ timeMs }) => timeMs);
  // A take-over commits the same snapshot again, perhaps long after the next record.
  if (next !== undefined) times.push(next - MOMENT_MS);
  return times.length === 0 ? undefined : Math.min(...times);
}

async function recordTime(
  history: ShardHistory,
  { spans }: Inventory,
  position: Position,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (position.seq === 0 || spanWith(spans, position) === undefined) return undefined;
  return (await recordAt(history, position, signal))?.timeMs;
}

/** Shards that are folded at one time to find a step. */
const SHARDS_AT_ONCE = 4;

/** The first record of a shard. */
const FIRST: Position = { generation: 1, seq: 1 };

/** A shard of a source, with a list of what the source holds of it. */
interface ListedShard {
  readonly history: ShardHistory;
  readonly inventory: Inventory;
}

/**
 * Finds the cut that a point means. A time cuts each shard after the records that the broker stored up to
 * it; a position cuts its own shard right after that record, and the others at the record's time.
 * @throws HISTORY_LOST if the point lies before what is kept, BAD_VALUE if it lies after it or names a
 * shard or generation that the job does not have; what the source throws; the reason of `signal`.
 */
export async function resolvePoint(
  source: HistorySource,
  point: Point,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  if (point.kind === "update" || point.kind === "mark") {
    return await resolveFound(source, point, await findPointed(source, point, signal), signal);
  }
  const shards = await listShards(source);
  switch (point.kind) {
    case "now":
      return { point, cut: await nowCut(source, shards, signal), timeMs: undefined };
    case "start":
      return {
        point,
        cut: shards.map(({ inventory }) => endOf(inventory, oldestOf)),
        timeMs: undefined,
      };
    case "time":
      return { point, cut: await timeCut(shards, point.timeMs, signal), timeMs: point.timeMs };
    case "position":
      return await atPosition(source, shards, point, signal);
    case "step":
      return { point, cut: await stepCut(source, shards, point.step, signal), timeMs: undefined };
  }
}

async function listShards(source: HistorySource): Promise<ListedShard[]> {
  const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
  return await mapConcurrently(numbers, async (shard) => {
    const history = source.shard(shard);
    return { history, inventory: await takeInventory(history) };
  });
}

function endOf(
  inventory: Inventory,
  end: (inventory: Inventory) => Position | undefined,
): Position {
  const position = end(inventory);
  if (position !== undefined) return position;
  throw historyLost(inventory.shard, "any point", undefined);
}

/**
 * Returns the ends of all journals at one moment: what follows from a record that is in the cut may only be in it
 * together with that record. Journals are listed one after the other while trainers push. If some have grown when all
 * are listed again, the moment is that of the newest record that was listed first: by then the broker has stored
 * whatever it dates up to it.
 */
async function nowCut(
  source: HistorySource,
  shards: readonly ListedShard[],
  signal: AbortSignal,
): Promise<Cut> {
  const ends = shards.map(({ inventory }) => endOf(inventory, newestOf));
  const again = await listShards(source);
  const later = again.map(({ inventory }) => endOf(inventory, newestOf));
  if (ends.every((end, shard) => comparePositions(end, later[shard] ?? end) === 0)) return ends;
  const times = await mapConcurrently([...shards.entries()], ([shard, { history, inventory }]) =>
    recordTime(history, inventory, ends[shard] as Position, signal),
  );
  const momentMs = Math.max(...times.filter((time) => time !== undefined));
  return await mapConcurrently([...again.entries()], async ([shard, { history, inventory }]) => {
    const [end, grown] = [ends[shard], later[shard]] as [Position, Position];
    // A journal that was replaced meanwhile goes on from where it was replaced.
    if (grown.generation !== end.generation) return grown;
    const span = spanWith(inventory.spans, { ...end, seq: end.seq + 1 });
    const seq = span === undefined ? end.seq : await history.lastUpTo(span, momentMs);
    return { ...end, seq: Math.max(end.seq, seq) };
  });
}

/**
 * Returns the cut at a time.
 * @throws HISTORY_LOST if nothing had been stored in any shard, or if what had been stored is trimmed.
 */
async function timeCut(
  shards: readonly ListedShard[],
  timeMs: number,
  signal: AbortSignal,
): Promise<Cut> {
  const cut = await mapConcurrently(shards, (shard) => positionOf(shard, timeMs, signal));
  if (cut.some(({ generation, seq }) => generation > 1 || seq > 0)) return cut;
  const firsts = await mapConcurrently(shards, ({ history, inventory }) =>
    timeOfPosition(history, inventory, FIRST, signal),
  );
  const startMs = Math.min(...firsts.filter((first) => first !== undefined));
  throw historyLost(shards[0]?.inventory.shard ?? 0, formatTime(timeMs), FIRST, startMs);
}

async function positionOf(
  { history, inventory }: ListedShard,
  timeMs: number,
  signal: AbortSignal,
): Promise<Position> {
  const position = await positionAt(history, inventory, timeMs);
  if (position !== undefined) return position;
  const oldest = oldestOf(inventory);
  // Nothing of the shard is missing, so it was empty then.
  if (oldest?.generation === 1 && oldest.seq === 0) return oldest;
  throw historyLost(
    inventory.shard,
    formatTime(timeMs),
    oldest,
    oldest && (await timeOfPosition(history, inventory, oldest, signal)),
  );
}

async function atPosition(
  source: HistorySource,
  shards: readonly ListedShard[],
  point: Extract<Point, { kind: "position" }>,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  const { shard } = point;
  checkShard(source, shard);
  const listed = shards[shard];
  if (listed === undefined) throw new PserverError("INTERNAL", `no shard ${shard}`);
  const position = checkPosition(listed.inventory, point);
  const timeMs = await timeOfPosition(listed.history, listed.inventory, position, signal);
  if (timeMs === undefined) {
    throw historyLost(shard, showPosition(shard, position), oldestOf(listed.inventory));
  }
  return { point, cut: await cutAt(shards, shard, position, timeMs, signal), timeMs };
}

/** A point that names the record of a trainer, which has to be searched for. */
export type SearchedPoint = Extract<Point, { kind: "update" | "mark" }>;

/** Finds the record that a point names. @throws as `findUpdate` and `findMark`. */
export async function findPointed(
  source: HistorySource,
  point: SearchedPoint,
  signal: AbortSignal,
): Promise<RecordMatch> {
  return point.kind === "update"
    ? await findUpdate(source, point, signal)
    : await findMark(source, point.name, signal);
}

/**
 * Returns the cut of a record that was found: its own shard right after it, the others at its time.
 * @throws HISTORY_LOST if another shard's history does not reach back so far; errors of the source.
 */
export async function resolveFound(
  source: HistorySource,
  point: SearchedPoint,
  { shard, position, timeMs }: RecordMatch,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  const shards = await listShards(source);
  return { point, cut: await cutAt(shards, shard, position, timeMs, signal), timeMs };
}

/** Cuts one shard at a position, and the others at the time of that position. */
async function cutAt(
  shards: readonly ListedShard[],
  shard: number,
  position: Position,
  timeMs: number,
  signal: AbortSignal,
): Promise<Cut> {
  return await mapConcurrently(shards, (other) =>
    other.inventory.shard === shard ? Promise.resolve(position) : positionOf(other, timeMs, signal),
  );
}

/** Returns the cut at the end of a step. @throws UNSUPPORTED in a job whose trainers do not keep step. */
async function stepCut(
  source: HistorySource,
  shards: readonly ListedShard[],
  step: number,
  signal: AbortSignal,
): Promise<Cut> {
  const { job, synchronization } = source;
  const { mode } = synchronization;
  if (mode === "async" || mode === "diloco") {
    const text = `point step:${step}: the trainers of job ${job} do not keep step: it is ${mode}`;
    throw new PserverError("UNSUPPORTED", text, { job });
  }
  return await mapConcurrently(
    shards,
    ({ history, inventory }) => findStep(history, inventory, job, step, signal),
    SHARDS_AT_ONCE,
  );
}

/** Returns the position with its generation. @throws BAD_VALUE if no record of the shard has had it yet. */
function checkPosition(
  inventory: Inventory,
  { shard, seq, generation }: Extract<Point, { kind: "position" }>,
): Position {
  const newest = endOf(inventory, newestOf);
  const found = { generation: generation ?? newest.generation, seq };
  const last = inventory.spans.findLast((span) => span.generation === found.generation)?.lastSeq;
  const isLater = found.generation > newest.generation || seq > (last ?? newest.seq);
  if (!isLater) return found;
  const at = showPosition(shard, found);
  throw new PserverError(
    "BAD_VALUE",
    `point ${at}: expected a position up to ${showPosition(shard, newest)}; received a later one`,
    { shard, expected: newest, received: found },
  );
}
