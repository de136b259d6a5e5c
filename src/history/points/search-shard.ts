import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { type ErrorCode, ensureError, type Position } from "../../protocol/index.ts";
import { spanWith } from "../reach.ts";
import { recordAt } from "../record-at.ts";
import type { JournalSpan, ShardHistory, TimedRecord } from "../source.ts";
import { tapeUpdates } from "../updates/tape-updates.ts";

/** A record that was found. */
export interface FoundRecord {
  readonly shard: number;
  readonly position: Position;
  /** When the broker stored it; rounded to microseconds if only the tape has it. */
  readonly timeMs: number;
}

/** What is searched for, as the lines of the tape and as records tell it. */
export interface Wanted {
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
 * Searches a shard in the order of its journals, without a fold: the tape, and the journal for records that
 * have no line there, or for all if the tape cannot be read. Ends at the first match, or with `isLast` gives
 * the last one.
 * @throws what the source throws; the reason of the signal.
 */
export async function searchShard(
  history: ShardHistory,
  wanted: Wanted,
  isLast: boolean,
  signal: AbortSignal,
): Promise<FoundRecord | undefined> {
  const spans = await history.spans();
  const all = { after: BEGINNING, to: END, wanted };
  const found = await unlessUnreadable(
    () => chosenOf(matchesIn(history, spans, wanted, signal), isLast),
    () => chosenOf(recordsIn(history, spans, all, signal), isLast),
  );
  return found && (await withRecordTime(history, spans, found, signal));
}

/** Whether the tape of a shard begins with its first record. @throws what the source throws. */
export async function tapeIsWhole(history: ShardHistory, signal: AbortSignal): Promise<boolean> {
  const begins = async (): Promise<boolean> => {
    for await (const { events } of tapeUpdates(history, BEGINNING, END, 0, signal)) {
      return events[0]?.generation === 1 && events[0].seq === 1;
    }
    return false;
  };
  return await unlessUnreadable(begins, () => Promise.resolve(false));
}

async function chosenOf(
  matches: AsyncIterable<FoundRecord>,
  isLast: boolean,
): Promise<FoundRecord | undefined> {
  let found: FoundRecord | undefined;
  for await (const match of matches) {
    found = match;
    if (!isLast) break;
  }
  return found;
}

/** The result of `read`, which reads a tape; that of `otherwise` if the tape cannot be read. */
async function unlessUnreadable<Result>(
  read: () => Promise<Result>,
  otherwise: () => Promise<Result>,
): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    if (!UNREADABLE.has(ensureError(error).code)) throw error;
    return await otherwise();
  }
}

async function* matchesIn(
  history: ShardHistory,
  spans: readonly JournalSpan[],
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<FoundRecord> {
  let covered = BEGINNING;
  for await (const part of tapeUpdates(history, BEGINNING, END, 0, signal)) {
    const { skipped } = part;
    if (skipped !== undefined) {
      yield* recordsIn(history, spans, { ...skipped, wanted }, signal);
    }
    covered = part.covered;
    for (const event of part.events) {
      if (!wanted.isEvent(event)) continue;
      const { shard, generation, seq, timeMs } = event;
      yield { shard, position: { generation, seq }, timeMs };
    }
  }
  yield* recordsIn(history, spans, { after: covered, to: END, wanted }, signal);
}

/** The records that match after a position up to another one. */
async function* recordsIn(
  history: ShardHistory,
  spans: readonly JournalSpan[],
  { after, to, wanted }: { after: Position; to: Position; wanted: Wanted },
  signal: AbortSignal,
): AsyncGenerator<FoundRecord> {
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

/** A match with the time of its record as the broker tells it, if the record is still kept. */
async function withRecordTime(
  history: ShardHistory,
  spans: readonly JournalSpan[],
  found: FoundRecord,
  signal: AbortSignal,
): Promise<FoundRecord> {
  if (spanWith(spans, found.position) === undefined) return found;
  try {
    const record = await recordAt(history, found.position, signal);
    return record === undefined ? found : { ...found, timeMs: record.timeMs };
  } catch (error) {
    // It was trimmed meanwhile.
    if (ensureError(error).code !== "HISTORY_LOST") throw error;
    return found;
  }
}
