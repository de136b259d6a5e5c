import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { comparePositions, type Position } from "../../protocol/index.ts";
import type { ShardHistory } from "../source.ts";
import type { JournalUpdates } from "./journal-updates.ts";
import { type TapePart, tapeUpdates } from "./tape-updates.ts";

/** The updates of a span of a shard. */
export interface ShardSpan {
  readonly after: Position;
  readonly to: Position;
  /** No update is wanted that was stored before this time, in milliseconds since 1970. */
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
 * Whether records without lines are listed: not those before the time from which on the tape was read, and
 * not the end of a journal that was abandoned, which no owner has folded.
 */
function isWanted({ after, to }: NonNullable<TapePart["skipped"]>, fromMs: number): boolean {
  return after.generation === to.generation || (after.generation === 0 && fromMs === 0);
}
