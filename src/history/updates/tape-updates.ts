import { decodeTape, type TapeMessage } from "../../actors/tape/tape-decoder.ts";
import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { comparePositions, ensureError, type Position } from "../../protocol/index.ts";
import type { ShardHistory, StoredTapeMessage } from "../source.ts";

/** Lines of a shard's tape that follow upon each other. */
export interface TapePart {
  readonly events: readonly UpdateEvent[];
  /** Up to here, the parts so far hold all lines that the tape has. */
  readonly covered: Position;
  /** The records right before the lines that the tape has none of, after one position up to another. */
  readonly skipped: { readonly after: Position; readonly to: Position } | undefined;
}

/**
 * The lines of a shard's tape after a position up to another one, in the order of the journal, each once:
 * two owners may have written the same. Messages stored before `fromMs` are not read. In the place of a message
 * that cannot be read there is one update that is not described, and its records count as skipped.
 * @throws BAD_VERSION for lines of a format that this program lacks; what the source throws.
 */
export async function* tapeUpdates(
  history: ShardHistory,
  after: Position,
  to: Position,
  fromMs: number,
  signal: AbortSignal,
): AsyncGenerator<TapePart> {
  let covered = after;
  let last = { ...after, entry: Number.POSITIVE_INFINITY };
  const start = { kind: "time", timeMs: fromMs } as const;
  for await (const message of history.readTape?.(start, signal) ?? []) {
    const decoded = decodeIfWhole(message, history.shard);
    if ("damage" in decoded) {
      // It has no lines that are wanted.
      if (comparePositions(covered, to) >= 0) continue;
      const events = [lostLines(message, history.shard, covered, decoded.damage)];
      yield { events, covered, skipped: undefined };
      continue;
    }
    const { generation, from, to: toSeq, events } = decoded;
    if (comparePositions({ generation, seq: from }, to) > 0) return;
    const whole = { generation, seq: toSeq };
    if (events.length === 0 || comparePositions(endOf(events), after) <= 0) continue;
    const fresh = events.filter(
      (event) => isLater(event, last) && comparePositions(event, to) <= 0,
    );
    const newest = fresh.at(-1);
    if (newest !== undefined) last = newest;
    const before = { generation, seq: from - 1 };
    const skipped =
      comparePositions(before, covered) > 0 ? { after: covered, to: before } : undefined;
    if (comparePositions(whole, covered) > 0) covered = whole;
    yield { events: fresh, covered, skipped };
  }
}

/** The lines in a message, or why it cannot be read. @throws BAD_VERSION. */
function decodeIfWhole(
  { data }: StoredTapeMessage,
  shard: number,
): TapeMessage | { readonly damage: string } {
  try {
    return decodeTape(data, shard);
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    if (code === "BAD_VERSION") throw thrown;
    return { damage: `${code}: ${message}` };
  }
}

/** What is known of the updates in a message of the tape that cannot be read: that they are right after a record. */
function lostLines(
  { seq, timeMs }: StoredTapeMessage,
  shard: number,
  covered: Position,
  damage: string,
): UpdateEvent {
  return {
    ...{ timeMs, shard, generation: Math.max(1, covered.generation), seq: covered.seq },
    ...{ entry: 0, entries: 1, verb: "unreadable", outcome: { kind: "unreadable" } },
    undescribed: `message ${seq} of the tape cannot be read: ${damage}`,
  };
}

function endOf(events: readonly UpdateEvent[]): Position {
  return events.at(-1) ?? { generation: 0, seq: 0 };
}

function isLater(event: UpdateEvent, last: Position & { readonly entry: number }): boolean {
  const order = comparePositions(event, last);
  return order > 0 || (order === 0 && event.entry > last.entry);
}
