import type { UpdateEvent } from "../actors/journal/describe-record.ts";
import { decodeTape, type TapeMessage } from "../actors/journal/tape/tape-decoder.ts";
import { comparePositions, ensureError, laterPosition, type Position } from "../protocol/index.ts";
import type { ShardHistory, StoredTapeMessage } from "./source.ts";

/** Consecutive lines of a shard's tape. */
export interface TapePart {
  readonly events: readonly UpdateEvent[];
  /** All lines of the tape up to here are in this part and those before it. */
  readonly covered: Position;
  /** Records right before the lines for which the tape has no lines. */
  readonly skipped: SkippedRecords | undefined;
}

/** Records after one position up to another one, which may be of a later generation. */
export interface SkippedRecords {
  readonly after: Position;
  readonly to: Position;
}

/**
 * The lines of a shard's tape after a position up to another one, in the order of the journal, each once:
 * two owners may have written the same. Messages stored before `fromMs` are not read. In the place of a message
 * that cannot be read there is one update that is not described, and its records count as skipped.
 * @throws BAD_VERSION for lines of a format that this program lacks; what the source throws.
 */
export async function* tapeUpdates(
  history: Pick<ShardHistory, "shard" | "readTape">,
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
      // The message has no lines that are wanted.
      if (comparePositions(covered, to) >= 0) continue;
      const events = [lostLines(message, history.shard, covered, decoded.damage)];
      yield { events, covered, skipped: undefined };
      continue;
    }
    const { generation, from, to: toSeq, events } = decoded;
    if (comparePositions({ generation, seq: from }, to) > 0) return;
    const whole = { generation, seq: toSeq };
    // A message may only say that records have no lines.
    if (comparePositions(laterPosition(endOf(events), whole), after) <= 0) continue;
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

/** Decodes the lines in a message; returns why, if it cannot be read. @throws BAD_VERSION */
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

/** Describes the updates in a message of the tape that cannot be read: only the record that they follow is known. */
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

/** A source of batches, with the batch from which its next element comes. */
interface MergeInput<T> {
  readonly batches: AsyncIterator<readonly T[]>;
  batch: readonly T[];
  at: number;
}

/**
 * Merges several sources, each in the order of `keyOf`, into that order; of equal elements, those of the earlier
 * source come first. Reads each source no more than a batch ahead. Ends all sources when it ends.
 */
export async function* mergeSorted<T>(
  sources: readonly AsyncIterable<readonly T[]>[],
  keyOf: (element: T) => number,
): AsyncGenerator<readonly T[]> {
  const opened = sources.map((source): MergeInput<T> => {
    return { batches: source[Symbol.asyncIterator](), batch: [], at: 0 };
  });
  try {
    const filled = await Promise.all(opened.map((input) => refill(input)));
    let inputs = opened.filter((_, i) => filled[i]);
    while (inputs.length > 0) {
      const { merged, empty } = mergeUntilEmpty(inputs, keyOf);
      if (merged.length > 0) yield merged;
      if (!(await refill(empty))) inputs = inputs.filter((input) => input !== empty);
    }
  } finally {
    await Promise.all(opened.map(({ batches }) => batches.return?.()));
  }
}

/** Reads the next batch of the input that has elements; false at its end. */
async function refill<T>(input: MergeInput<T>): Promise<boolean> {
  for (;;) {
    const next = await input.batches.next();
    if (next.done === true) return false;
    if (next.value.length === 0) continue;
    input.batch = next.value;
    input.at = 0;
    return true;
  }
}

/** Takes elements in order until the batch of one input is used up. */
function mergeUntilEmpty<T>(
  inputs: readonly MergeInput<T>[],
  keyOf: (element: T) => number,
): { merged: readonly T[]; empty: MergeInput<T> } {
  const merged: T[] = [];
  for (;;) {
    let least: MergeInput<T> | undefined;
    let leastKey = Number.POSITIVE_INFINITY;
    for (const input of inputs) {
      const key = keyOf(input.batch[input.at] as T);
      if (least !== undefined && key >= leastKey) continue;
      least = input;
      leastKey = key;
    }
    if (least === undefined) throw new RangeError("nothing to merge");
    merged.push(least.batch[least.at] as T);
    least.at += 1;
    if (least.at === least.batch.length) return { merged, empty: least };
  }
}

/** Yields the batches of several sources as they come. Ends all sources when it ends. */
export async function* mergeArrivals<T>(
  sources: readonly AsyncIterable<readonly T[]>[],
): AsyncGenerator<readonly T[]> {
  const iterators = sources.map((source) => source[Symbol.asyncIterator]());
  const next = async (
    at: number,
  ): Promise<{ at: number; result: IteratorResult<readonly T[]> }> => {
    const result = (await iterators[at]?.next()) ?? { done: true, value: undefined };
    return { at, result };
  };
  const pending = new Map(iterators.map((_, at) => [at, next(at)]));
  // The error of a source that fails while another one's batch is used is thrown on the next turn.
  for (const promise of pending.values()) promise.catch(() => undefined);
  try {
    while (pending.size > 0) {
      const { at, result } = await Promise.race(pending.values());
      if (result.done === true) {
        pending.delete(at);
        continue;
      }
      const following = next(at);
      following.catch(() => undefined);
      pending.set(at, following);
      yield result.value;
    }
  } finally {
    for (const iterator of iterators) void iterator.return?.(undefined)?.catch(() => undefined);
  }
}

/**
 * Yields the last `count` elements of batches, 1 or more, as one batch once the batches have ended. Holds no more
 * than these.
 */
export async function* lastOf<T>(
  batches: AsyncIterable<readonly T[]>,
  count: number,
): AsyncGenerator<readonly T[]> {
  let last: T[] = [];
  for await (const batch of batches) {
    for (const element of batch) last.push(element);
    // Cut only now and then, because that copies what is kept.
    if (last.length > 2 * count) last = last.slice(-count);
  }
  if (last.length > 0) yield last.slice(-count);
}

/** Filter of updates; what is undefined admits all. */
export interface UpdateFilter {
  /** Updates of this parameter only. */
  readonly parameter?: string | undefined;
  /** Updates and notes of this trainer only. */
  readonly trainer?: string | undefined;
}

/** Whether an update is wanted. */
export function admits({ parameter, trainer }: UpdateFilter, event: UpdateEvent): boolean {
  if (parameter !== undefined && event.block?.parameter !== parameter) return false;
  return trainer === undefined || event.trainer === trainer;
}
