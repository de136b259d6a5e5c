import { busy, PserverError } from "../../protocol/index.ts";
import type { KvBucket, KvEntry } from "../jetstream/kv-bucket.ts";

/** Where records are changed. */
export interface BucketDeps {
  readonly bucket: KvBucket;
  /** Waits between tries. */
  readonly pause: (delayMs: number) => Promise<void>;
}

/** What to make of a record: `write` is its new value, absent if it stays as it is. */
export interface Decision<Result> {
  readonly write?: unknown;
  readonly result: Result;
}

/** The decision that held. `revision` is that of the record afterwards; 0 if there is none. */
export interface Changed<Result> {
  readonly result: Result;
  readonly revision: number;
}

/** Reads and writes the value of one kind of record. */
export interface RecordCodec<Stored, Value extends Stored> {
  readonly parse: (stored: KvEntry | undefined) => Stored;
  readonly toRecord: (value: Value) => unknown;
}

/** A record as it was read already, to save one read. */
export interface FirstRead {
  readonly record: KvEntry | undefined;
}

const TRIES_MAX = 24;
const LOST_ANSWERS_MAX = 2;
const PAUSE_MS_MAX = 40;

/**
 * Changes one record by compare-and-swap until a decision is written on the very record it was
 * made on. `decide` is called with the record as read, and again after each lost race. A write whose
 * answer was lost may have happened: the record is then read and decided on again, so `decide` must
 * recognize its own write.
 * @throws BUSY if others were faster 24 times, TIMEOUT if the broker did not answer three times;
 * and whatever `decide` throws, which ends it.
 */
export async function change<Result>(
  { bucket, pause }: BucketDeps,
  key: string,
  decide: (current: KvEntry | undefined) => Decision<Result> | Promise<Decision<Result>>,
  first?: FirstRead,
): Promise<Changed<Result>> {
  let current = first === undefined ? await bucket.read(key) : first.record;
  let lostAnswers = 0;
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const { write, result } = await decide(current);
    if (write === undefined) return { result, revision: current?.revision ?? 0 };
    try {
      const revision =
        current === undefined
          ? await bucket.create(key, write)
          : await bucket.update(key, write, current.revision);
      if (revision !== undefined) return { result, revision };
      // Jitter, so that those who collided do not collide again.
      await pause(Math.random() * Math.min(2 * tries, PAUSE_MS_MAX));
    } catch (error) {
      if (!(error instanceof PserverError) || error.code !== "TIMEOUT") throw error;
      lostAnswers += 1;
      if (lostAnswers > LOST_ANSWERS_MAX) throw error;
    }
    current = await bucket.read(key);
  }
  throw busy(`record ${key}: changed by others ${TRIES_MAX} times in a row`, {
    key,
    expected: TRIES_MAX,
  });
}

/**
 * As {@link change}, with the record's value parsed. `decide` leaves the record alone by returning
 * what it was given; any other value, an equal copy too, is written.
 */
export async function changeValue<Stored, Value extends Stored>(
  deps: BucketDeps,
  key: string,
  { parse, toRecord }: RecordCodec<Stored, Value>,
  decide: (before: Stored) => Value | Promise<Value>,
  first?: FirstRead,
): Promise<Changed<Value>> {
  const decideRecord = async (current: KvEntry | undefined): Promise<Decision<Value>> => {
    const before = parse(current);
    const after = await decide(before);
    return after === before ? { result: after } : { write: toRecord(after), result: after };
  };
  return await change(deps, key, decideRecord, first);
}
