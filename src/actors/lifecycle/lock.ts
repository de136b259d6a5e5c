import { busy, escapeId, escapeName, PserverError, unescapeName } from "../../protocol/index.ts";
import { type KvBucket, type KvEntry, replaceEntry } from "../journal/kv-bucket.ts";

// JetStream KV as the distributed lock of a job.
//
// Who may initialize, which session a trainer has and who keeps step are entries of the job's bucket. No host holds
// such a lock, and no server keeps one: a host reads an entry with its revision, decides, and writes what it has
// decided only if the entry still has that revision. The broker compares and swaps. Of hosts that decide at the same
// time one succeeds; the others read again and decide on what it has written. So of many trainers that begin, one is
// selected, whichever hosts they ask: that decision is the machine of machine.ts, on the entry of the job or of a
// parameter.
//
// The selected trainer keeps the lock for as long as its lease is renewed (sessions.ts). If the lease is lost, the next
// `begin` gives the lock to another trainer under the next epoch. Two things fence off the one that has lost it,
// however late its messages come: the machine takes a `finish` or `abort` only from the session and epoch that hold
// the lock, and the fold rejects every `init` of an epoch that was not granted or is no longer the newest
// (fold/declaration-table.ts, fold/check-update.ts).

/** Dependencies of reading an entry. */
export interface ReadDeps {
  readonly bucket: Pick<KvBucket, "read">;
}

/** Dependencies of changing an entry. */
export interface BucketDeps {
  readonly bucket: KvBucket;
  /** Waits between tries. */
  readonly pause: (delayMs: number) => Promise<void>;
}

/** The value of an entry as it was read or written, and the entry's revision; 0 if there is none. */
export interface Changed<Value> {
  readonly result: Value;
  readonly revision: number;
}

const TRIES_MAX = 24;
const LOST_ANSWERS_MAX = 2;
const PAUSE_MS_MAX = 40;

/** One entry of a job's bucket. It is read as `Stored`, which may say that there is none, and written as `Value`. */
export class BucketEntry<Stored, Value extends Stored = Stored> {
  readonly #key: string;
  readonly #parse: (stored: KvEntry | undefined) => Stored;
  readonly #toJson: (value: Value) => unknown;
  readonly #triesMax: number;

  /** `triesMax`: how often a change tries before it gives up. */
  constructor(
    key: string,
    parse: (stored: KvEntry | undefined) => Stored,
    toJson: (value: Value) => unknown,
    triesMax = TRIES_MAX,
  ) {
    this.#key = key;
    this.#parse = parse;
    this.#toJson = toJson;
    this.#triesMax = triesMax;
  }

  /** Reads the value. @throws as `KvBucket` and the entry's parser do. */
  async read({ bucket }: ReadDeps): Promise<Stored> {
    return this.#parse(await bucket.read(this.#key));
  }

  /** Reads the value with its revision, for a {@link change} of it. @throws as {@link read}. */
  async readWithRevision({ bucket }: ReadDeps): Promise<Changed<Stored>> {
    return await this.#readValue(bucket);
  }

  /**
   * Changes the entry by compare-and-swap, until a decision is written over the very entry on which it was made.
   * `decide` is called with the value as read, and again after each lost race. It leaves the entry alone by returning
   * the value that it got; any other value, an equal copy too, is written. A write whose answer was lost may have
   * happened: the entry is then read and decided on again, so `decide` must recognize its own write. `first`, the
   * value as it was read already with its revision, saves one read.
   * @throws BUSY if others were faster `triesMax` times, 24 by default; TIMEOUT if the broker did not answer three
   * times; and whatever `decide` throws, which ends it.
   */
  async change(
    { bucket, pause }: BucketDeps,
    decide: (before: Stored) => Value | Promise<Value>,
    first?: Changed<Stored>,
  ): Promise<Changed<Value>> {
    let before = first ?? (await this.#readValue(bucket));
    let lostAnswers = 0;
    for (let tries = 1; tries <= this.#triesMax; tries++) {
      const result = await decide(before.result);
      if (result === before.result) return { result, revision: before.revision };
      try {
        const revision = await this.#compareAndSwap(bucket, before.revision, result);
        if (revision !== undefined) return { result, revision };
        // Jitter, so that those who collided do not collide again.
        await pause(Math.random() * Math.min(2 * tries, PAUSE_MS_MAX));
      } catch (error) {
        if (!(error instanceof PserverError) || error.code !== "TIMEOUT") throw error;
        lostAnswers += 1;
        if (lostAnswers > LOST_ANSWERS_MAX) throw error;
      }
      before = await this.#readValue(bucket);
    }
    throw busy(`record ${this.#key}: changed by others ${this.#triesMax} times in a row`, {
      key: this.#key,
      expected: this.#triesMax,
    });
  }

  /**
   * Writes a value if the entry still has this revision, 0 for no entry.
   * @returns the new revision; undefined if somebody else has written the entry since.
   */
  #compareAndSwap(bucket: KvBucket, revision: number, value: Value): Promise<number | undefined> {
    const expected = revision === 0 ? undefined : revision;
    return replaceEntry(bucket, this.#key, this.#toJson(value), expected);
  }

  async #readValue(bucket: Pick<KvBucket, "read">): Promise<Changed<Stored>> {
    const stored = await bucket.read(this.#key);
    return { result: this.#parse(stored), revision: stored?.revision ?? 0 };
  }
}

/** Key of the job's own lifecycle. */
export const JOB_KEY = "job";

/** Key of the counter of sessions. */
export const SESSION_KEY = "session";

/** Key of the session up to which ended ones have been, or are about to be, swept. */
export const SWEPT_KEY = "swept";

/** Key of the counter of block numbers. */
export const BLOCKS_KEY = "blocks";

/** Key of the members: the trainers that keep step. */
export const MEMBERS_KEY = "members";

/** Prefix of the keys of all parameters. */
export const PARAMETER_KEYS = "param.";

/** Prefix of the keys of all trainers, in the job's bucket and among the leases. */
export const TRAINER_KEYS = "trainer.";

/** Returns the key of a parameter's entry. */
export function parameterKey(name: string): string {
  return `${PARAMETER_KEYS}${escapeName(name)}`;
}

/** Inverse of {@link parameterKey}; @throws BAD_NAME for any other key. */
export function parameterOfKey(key: string): string {
  return unescapeName(key.slice(PARAMETER_KEYS.length));
}

/** Returns the key of a trainer's entry, and of its lease. */
export function trainerKey(trainer: string): string {
  return `${TRAINER_KEYS}${escapeId(trainer)}`;
}
