import { busy, PserverError } from "../../protocol/index.ts";
import type { Records, StoredRecord } from "../jetstream/kv-bucket.ts";

/** What to make of a record: `write` is its new value, absent if it stays as it is. */
export interface Decision<Result> {
  readonly write?: unknown;
  readonly result: Result;
}

/** The settled decision. `revision` is that of the record it left; 0 if there is none. */
export interface Changed<Result> {
  readonly result: Result;
  readonly revision: number;
}

/** How {@link change} goes about it. */
export interface ChangeOptions<Result> {
  readonly records: Records;
  readonly key: string;
  /** Called with the record as read, and again after each lost race. */
  readonly decide: (
    current: StoredRecord | undefined,
  ) => Decision<Result> | Promise<Decision<Result>>;
  /** The record as it was read already, to save one read. */
  readonly first?: { readonly record: StoredRecord | undefined };
  /** Waits between tries. */
  readonly pause: (delayMs: number) => Promise<void>;
}

const TRIES_MAX = 24;
const LOST_ANSWERS_MAX = 2;
const PAUSE_MS_MAX = 40;

/**
 * Changes one record by compare-and-swap until a decision is written on the very record it was
 * made on. A write whose answer was lost may have happened: the record is read again and decided
 * upon anew, so `decide` must know its own write when it sees it.
 * @throws BUSY if others were faster 24 times, TIMEOUT if the broker did not answer three times;
 * and whatever `decide` throws, which ends it.
 */
export async function change<Result>(options: ChangeOptions<Result>): Promise<Changed<Result>> {
  const { records, key, decide, pause } = options;
  let current = options.first === undefined ? await records.read(key) : options.first.record;
  let lostAnswers = 0;
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const { write, result } = await decide(current);
    if (write === undefined) return { result, revision: current?.revision ?? 0 };
    try {
      const revision =
        current === undefined
          ? await records.create(key, write)
          : await records.update(key, write, current.revision);
      if (revision !== undefined) return { result, revision };
      // Jitter, so that those who collided do not collide again.
      await pause(Math.random() * Math.min(2 * tries, PAUSE_MS_MAX));
    } catch (error) {
      if (!(error instanceof PserverError) || error.code !== "TIMEOUT") throw error;
      lostAnswers += 1;
      if (lostAnswers > LOST_ANSWERS_MAX) throw error;
    }
    current = await records.read(key);
  }
  throw busy(`record ${key}: changed by others ${TRIES_MAX} times in a row`, {
    key,
    expected: TRIES_MAX,
  });
}
