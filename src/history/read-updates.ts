import { setTimeout as delay } from "node:timers/promises";
import type { Shard } from "../actors/fold/shard.ts";
import { foldDescribed, type UpdateEvent } from "../actors/journal/describe-record.ts";
import {
  comparePositions,
  ensureError,
  JobSubjects,
  type Position,
  type PserverError,
} from "../protocol/index.ts";
import type { Cut, Point, ResolvedPoint } from "./points.ts";
import { foldUnlessDamaged, loadBase, nextTurn, readAgain } from "./replay/replay-shard.ts";
import { findPointed, resolveFound, resolvePoint } from "./resolve-point.ts";
import {
  END_SEQ,
  type HistorySource,
  rebuildableRanges,
  type ShardHistory,
  summarizeRecord,
  type TimedRecord,
  takeInventory,
} from "./source.ts";
import {
  admits,
  lastOf,
  mergeArrivals,
  mergeSorted,
  type TapePart,
  tapeUpdates,
  type UpdateFilter,
} from "./update-stream.ts";

/** Time for which records are folded in one turn of the event loop. */
const TURN_MS = 20;

/**
 * Pause between two checks whether a shard, whose journal cannot be folded further, goes on under a new generation.
 */
const FAILED_PAUSE_MS = 1_000;

/**
 * Updates of a shard in the order of its journal. The records are folded, so that the outcome of each is known. A
 * record that cannot be folded is one update, rejected with FOLD_FAILED: the last one of its generation that is
 * known.
 */
export class JournalUpdates {
  readonly #history: ShardHistory;
  readonly #subjects: JobSubjects;
  readonly #signal: AbortSignal;
  #shard: Shard | undefined;
  #generation = 0;
  /** Why the shard cannot be folded further. */
  #failure: PserverError | undefined;

  constructor(history: ShardHistory, subjects: JobSubjects, signal: AbortSignal) {
    this.#history = history;
    this.#subjects = subjects;
    this.#signal = signal;
  }

  /**
   * Reads the updates after a position up to another one, some at a time. Leaves out what the source does not hold
   * any more. May be called again to go on.
   * @throws errors of the source and the fold; the reason of the signal.
   */
  async *between(after: Position, to: Position): AsyncGenerator<readonly UpdateEvent[]> {
    for (const part of rebuildableRanges(await takeInventory(this.#history))) {
      const { generation, firstSeq, lastSeq } = part;
      const last = { generation, seq: lastSeq };
      if (generation > to.generation || comparePositions(last, after) <= 0) continue;
      const fromSeq = generation === after.generation ? Math.max(firstSeq, after.seq) : firstSeq;
      const toSeq = generation === to.generation ? Math.min(lastSeq, to.seq) : lastSeq;
      if (fromSeq >= toSeq) continue;
      await this.#load({ generation, seq: fromSeq });
      try {
        yield* this.#fold(fromSeq, toSeq);
      } catch (error) {
        if (ensureError(error).code !== "FOLD_FAILED") throw error;
      }
    }
  }

  /** Reads the updates after a position as they come, until the signal is aborted. @throws as {@link between}. */
  async *follow(after: Position): AsyncGenerator<readonly UpdateEvent[]> {
    await this.#load(after);
    let afterSeq = after.seq;
    for (;;) {
      try {
        yield* this.#fold(afterSeq, END_SEQ);
      } catch (error) {
        const { code, retryable } = ensureError(error);
        this.#signal.throwIfAborted();
        const newer = await this.#newerGeneration();
        if (newer !== undefined) {
          await this.#load({ generation: newer, seq: 0 });
          afterSeq = 0;
        } else if (code === "FOLD_FAILED") {
          await delay(FAILED_PAUSE_MS, undefined, { signal: this.#signal }).catch(() => undefined);
        }
        // A journal without news for a while, or a connection that was lost.
        else if (code !== "TIMEOUT" && !retryable) throw error;
      }
    }
  }

  /** Loads the shard, unless it is loaded, folded up to a position or less. */
  async #load({ generation, seq }: Position): Promise<void> {
    const present = this.#shard;
    const isUsable = this.#failure === undefined && present !== undefined && present.seq <= seq;
    if (this.#generation === generation && isUsable) return;
    const [subjects, signal] = [this.#subjects, this.#signal];
    this.#shard = await loadBase(this.#history, { generation, seq }, { subjects, signal });
    this.#generation = generation;
    this.#failure = undefined;
  }

  /** Returns the generation after the present one, if there is one. */
  async #newerGeneration(): Promise<number | undefined> {
    const last = (await this.#history.spans()).at(-1)?.generation;
    return last !== undefined && last > this.#generation ? last : undefined;
  }

  /** Folds the records up to `toSeq`, and describes those after `afterSeq`. */
  async *#fold(afterSeq: number, toSeq: number): AsyncGenerator<readonly UpdateEvent[]> {
    const shard = this.#shard;
    if (shard === undefined) return;
    if (this.#failure !== undefined) throw this.#failure;
    const [history, signal, generation] = [this.#history, this.#signal, this.#generation];
    const place = { shard: history.shard, generation };
    const fold = (record: TimedRecord) => foldDescribed(shard, record, place);
    let turnEndsAtMs = performance.now() + TURN_MS;
    for await (const batch of history.read({ generation, seq: shard.seq }, toSeq, signal)) {
      let events: UpdateEvent[] = [];
      for (const record of batch) {
        try {
          const folded = foldUnlessDamaged(record, fold);
          const { events: described } = folded
            ? folded.result
            : fold(await readAgain(history, { generation, seq: record.seq }, record, signal));
          if (record.seq > afterSeq) events.push(...described);
        } catch (error) {
          const found = ensureError(error);
          if (found.code !== "FOLD_FAILED") throw error;
          this.#failure = found;
          yield [...events, this.#failedUpdate(record, found)];
          throw found;
        }
        if (performance.now() < turnEndsAtMs) continue;
        yield events;
        events = [];
        await nextTurn();
        signal.throwIfAborted();
        turnEndsAtMs = performance.now() + TURN_MS;
      }
      yield events;
    }
  }

  /** Describes a record that cannot be folded: only its place, its trainer and the error are known. */
  #failedUpdate(record: TimedRecord, { code, message }: PserverError): UpdateEvent {
    const { seq, timeMs, payload } = record;
    const summary = summarizeRecord(this.#subjects.job, record);
    return {
      ...{ timeMs, shard: this.#history.shard, generation: this.#generation, seq },
      ...{ entry: 0, entries: 1, verb: summary?.verb ?? "unreadable" },
      outcome: { kind: "rejected", code, message },
      ...summary?.sender,
      bytes: payload.length,
    };
  }
}

/** Range of the updates of a shard. */
export interface ShardSpan {
  readonly after: Position;
  readonly to: Position;
  /** Updates that were stored before this time, in milliseconds since 1970, are not wanted. */
  readonly fromMs: number;
}

/**
 * The updates of a shard after a position up to another one: from its tape, which reaches back to the job's
 * beginning and needs no fold, and what has no line there, or none yet, from its journal.
 * @throws as `tapeUpdates` and `JournalUpdates.between`.
 */
export async function* shardUpdates(
  history: ShardHistory,
  journal: JournalUpdates,
  { after, to, fromMs }: ShardSpan,
  signal: AbortSignal,
): AsyncGenerator<readonly UpdateEvent[]> {
  let covered = after;
  for await (const part of tapeUpdates(history, after, to, fromMs, signal)) {
    const { skipped } = part;
    if (skipped !== undefined && isWanted(skipped, fromMs)) {
      yield* journal.between(skipped.after, skipped.to);
    }
    covered = part.covered;
    if (part.events.length > 0) yield part.events;
  }
  if (comparePositions(covered, to) < 0) yield* journal.between(covered, to);
}

/**
 * Whether records without lines are listed: not those before the time from which the tape was read, and not the end
 * of a journal that was abandoned, which no owner has folded.
 */
function isWanted({ after, to }: NonNullable<TapePart["skipped"]>, fromMs: number): boolean {
  return after.generation === to.generation || (after.generation === 0 && fromMs === 0);
}

/** Options of {@link readUpdates}. */
export interface UpdateQuery extends UpdateFilter, UpdateRange {
  /** Whether later updates are read, too, as they come, until the signal is aborted. */
  readonly follow?: boolean;
  /** Only the last so many of those up to `until`: 1 or more. */
  readonly last?: number;
  readonly signal: AbortSignal;
}

const BEGINNING: Position = { generation: 0, seq: 0 };

/**
 * Reads the updates of a job, some at a time, in the order of the times at which the broker stored them; between
 * shards that order is as good as the broker's clock. Followed ones come in the order of arrival. Memory does not
 * grow with the length of the history, but with `last`.
 * @throws errors of the source and the fold; the reason of the signal.
 */
export async function* readUpdates(
  source: HistorySource,
  query: UpdateQuery,
): AsyncGenerator<readonly UpdateEvent[]> {
  const subjects = new JobSubjects(source.job);
  const { since, until, sinceMs, untilMs, follow = false, last, signal } = query;
  const shards = Array.from({ length: source.shards }, (_, shard) => {
    const history = source.shard(shard);
    const journal = new JournalUpdates(history, subjects, signal);
    const span = { after: since?.[shard] ?? BEGINNING, to: until[shard] ?? BEGINNING };
    return { history, journal, ...span, fromMs: sinceMs };
  });
  // Where there is a cut, it is exact, and the time only spares reading.
  const leastMs = since === undefined ? sinceMs : 0;
  const wanted = (events: readonly UpdateEvent[]): readonly UpdateEvent[] =>
    events.filter(
      (event) =>
        admits(query, event) &&
        (leastMs === 0 || event.timeMs > leastMs) &&
        event.timeMs <= untilMs,
    );
  const past = async function* (): AsyncGenerator<readonly UpdateEvent[]> {
    const sources = shards.map(({ history, journal, ...span }) =>
      shardUpdates(history, journal, span, signal),
    );
    for await (const events of mergeSorted(sources, ({ timeMs }) => timeMs)) yield wanted(events);
  };
  yield* last === undefined ? past() : lastOf(past(), last);
  if (!follow) return;
  const present = shards.map(({ journal, to }) => journal.follow(to));
  for await (const events of mergeArrivals(present)) yield wanted(events);
}

/** Range of a history between two points. */
export interface UpdateRange {
  /** The range begins after this cut; undefined for all that is known. */
  readonly since: Cut | undefined;
  /** It begins after this time, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** It ends with this cut. */
  readonly until: Cut;
  /** It ends with this time, in milliseconds since 1970. */
  readonly untilMs: number;
}

/**
 * Resolves the range between two points. A time, an update and a named note may lie before what the journals keep:
 * tapes reach back further.
 * @throws as `resolvePoint`.
 */
export async function resolveRange(
  source: HistorySource,
  since: Point,
  until: Point,
  signal: AbortSignal,
): Promise<UpdateRange> {
  const end = await resolveOrTime(source, until, signal);
  const { cut: newest } = await resolvePoint(source, { kind: "now" }, signal);
  const begin = since.kind === "start" ? undefined : await resolveOrTime(source, since, signal);
  return {
    since: begin?.cut,
    sinceMs: begin?.timeMs ?? 0,
    until: end.cut ?? newest,
    // The cut is exact.
    untilMs:
      end.cut === undefined ? (end.timeMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
  };
}

/** Resolves a point to its cut; if it is a time or a record before what the journals keep, to its time alone. */
async function resolveOrTime(
  source: HistorySource,
  point: Point,
  signal: AbortSignal,
): Promise<{ cut: Cut | undefined; timeMs: number | undefined }> {
  switch (point.kind) {
    case "time":
      return await cutOrTime(resolvePoint(source, point, signal), point.timeMs);
    case "update":
    case "mark": {
      const found = await findPointed(source, point, signal);
      return await cutOrTime(resolveFound(source, point, found, signal), found.timeMs);
    }
    default:
      return await resolvePoint(source, point, signal);
  }
}

async function cutOrTime(
  resolving: Promise<ResolvedPoint>,
  timeMs: number,
): Promise<{ cut: Cut | undefined; timeMs: number | undefined }> {
  try {
    return await resolving;
  } catch (error) {
    if (ensureError(error).code !== "HISTORY_LOST") throw error;
    return { cut: undefined, timeMs };
  }
}
