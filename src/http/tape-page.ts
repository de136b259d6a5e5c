import type { UpdateEvent } from "../actors/journal/describe-record.ts";
import type { HistorySource } from "../history/source.ts";
import { admits, mergeSorted, tapeUpdates, type UpdateFilter } from "../history/update-stream.ts";
import { mismatch, type Position } from "../protocol/index.ts";

/** Where a page of the tape begins, and what is on it. */
export interface TapePageQuery extends UpdateFilter {
  /** Only updates that were stored after this time, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** Where an earlier page has ended; undefined for the first. */
  readonly after: string | undefined;
  /** Most updates on the page: 1 or more. */
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** Some updates of a job, in the order of the times at which the broker stored them. */
export interface TapePage {
  readonly updates: readonly UpdateEvent[];
  /** Where the next page begins, also one of what is still to come. */
  readonly next: string;
}

/** Updates that are looked at for one page; where few are wanted, a page may therefore have none. */
const SCANNED_MAX = 50_000;

/**
 * How long before the time of an update the tape is read: clocks of brokers differ, and what is read twice is
 * dropped.
 */
const OVERLAP_MS = 5_000;

const BEGINNING: Position = { generation: 0, seq: 0 };

/** The last position that any journal can have. */
const END: Position = { generation: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/** How far the updates of a shard were listed: up to an entry of a record. */
interface Listed extends Position {
  /** How many entries of the record were listed. */
  readonly entries: number;
}

/** Where a page ends. */
interface PageEnd {
  /** Time of the last update that was listed, in milliseconds since 1970. */
  readonly timeMs: number;
  /** By the shard's number; undefined if none of its updates was listed. */
  readonly shards: readonly (Listed | undefined)[];
}

/**
 * Reads a page of a job's tape. No journal is folded, so that a page costs the reader no memory for values: an update
 * is listed about a second after it was applied, and one without a line is not listed.
 * @throws BAD_VALUE if `after` is not from an earlier page of the job; the errors of the source; the reason of the
 * signal.
 */
export async function readTapePage(source: HistorySource, query: TapePageQuery): Promise<TapePage> {
  const { sinceMs, limit, signal } = query;
  const end = query.after === undefined ? undefined : parseEnd(query.after, source.shards);
  const listed = [...(end?.shards ?? new Array<Listed | undefined>(source.shards))];
  const fromMs = Math.max(sinceMs, (end?.timeMs ?? 0) - OVERLAP_MS);
  const parts = Array.from({ length: source.shards }, (_, shard) =>
    linesOf(source, shard, listed[shard], fromMs, signal),
  );
  const updates: UpdateEvent[] = [];
  let timeMs = end?.timeMs ?? sinceMs;
  let scanned = 0;
  for await (const events of mergeSorted(parts, (event) => event.timeMs)) {
    for (const event of events) {
      if (updates.length === limit || scanned === SCANNED_MAX) {
        return { updates, next: writeEnd({ timeMs, shards: listed }) };
      }
      scanned += 1;
      const { shard, generation, seq, entry } = event;
      listed[shard] = { generation, seq, entries: entry + 1 };
      timeMs = Math.max(timeMs, event.timeMs);
      if (event.timeMs > sinceMs && admits(query, event)) updates.push(event);
    }
    signal.throwIfAborted();
  }
  return { updates, next: writeEnd({ timeMs, shards: listed }) };
}

/** The lines of a shard's tape after what was listed. */
async function* linesOf(
  source: HistorySource,
  shard: number,
  listed: Listed | undefined,
  fromMs: number,
  signal: AbortSignal,
): AsyncGenerator<readonly UpdateEvent[]> {
  // The rest of a record that was listed in part is read with the whole record.
  const after = listed === undefined ? BEGINNING : { ...listed, seq: listed.seq - 1 };
  const isNew = ({ generation, seq, entry }: UpdateEvent): boolean =>
    listed === undefined ||
    generation !== listed.generation ||
    seq !== listed.seq ||
    entry >= listed.entries;
  for await (const { events } of tapeUpdates(source.shard(shard), after, END, fromMs, signal)) {
    yield events.filter(isNew);
  }
}

/** Numbers are written to this base, because the end of a page is a part of a URL. */
const BASE = 36;

/** Writes where a page ends: its time, then `generation.seq.entries` of each shard, or nothing. */
function writeEnd({ timeMs, shards }: PageEnd): string {
  const places = shards.map((listed) =>
    listed === undefined
      ? ""
      : [listed.generation, listed.seq, listed.entries].map((n) => n.toString(BASE)).join("."),
  );
  return [Math.floor(timeMs).toString(BASE), ...places].join("-");
}

function parseEnd(text: string, shards: number): PageEnd {
  const [time = "", ...places] = text.split("-");
  const parsed = places.map((place) => place.split(".").map(parseNumber));
  const isWhole = parsed.every(
    (numbers, i) => places[i] === "" || (numbers.length === 3 && !numbers.includes(Number.NaN)),
  );
  const timeMs = parseNumber(time);
  if (places.length !== shards || !isWhole || Number.isNaN(timeMs)) {
    throw mismatch("BAD_VALUE", "after", 'the "next" of an earlier page', "another text");
  }
  return {
    timeMs,
    shards: parsed.map(([generation = 0, seq = 0, entries = 0], i) =>
      places[i] === "" ? undefined : { generation, seq, entries },
    ),
  };
}

/** Parses a number as {@link writeEnd} writes it; NaN for any other text. */
function parseNumber(text: string): number {
  const number = Number.parseInt(text, BASE);
  return /^[0-9a-z]{1,11}$/.test(text) && Number.isSafeInteger(number) ? number : Number.NaN;
}
