import { integerField, PserverError } from "../../protocol/index.ts";
import type { KvEntry } from "../jetstream/kv-bucket.ts";
import { type BucketDeps, BucketRecord } from "./bucket-record.ts";
import type { JobSettings } from "./owners.ts";
import { RECORD_FORMAT, readRecord, SESSION_KEY, SWEPT_KEY } from "./record-format.ts";

/** The last session number given. */
const LAST_GIVEN = numberRecord(SESSION_KEY);

/** The session up to which ended ones have been, or are about to be, swept; 0 before the first sweep. */
export const SWEPT = numberRecord(SWEPT_KEY);

interface Waiter {
  readonly resolve: (session: number) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Hands out the session numbers of a job: each is given once, and a later one is higher. Requests that
 * come while a write is under way share the next write, so that many may join at once. The host bounds
 * how many wait by bounding the requests it works on.
 */
export class SessionCounter {
  readonly #deps: BucketDeps;
  #waiting: Waiter[] = [];
  #isCounting = false;

  constructor(deps: BucketDeps) {
    this.#deps = deps;
  }

  /** The next number; @throws as {@link BucketRecord.change} does. */
  next(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (!this.#isCounting) void this.#count();
    });
  }

  /** The last number given; 0 before the first. */
  async last(): Promise<number> {
    return await LAST_GIVEN.read(this.#deps);
  }

  async #count(): Promise<void> {
    this.#isCounting = true;
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      try {
        let session = (await this.#add(waiting.length)) - waiting.length;
        for (const { resolve } of waiting) resolve(++session);
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
    }
    this.#isCounting = false;
  }

  /** Takes `count` new numbers and returns the last. Numbers whose write got no answer are skipped. */
  async #add(count: number): Promise<number> {
    return (await LAST_GIVEN.change(this.#deps, (last) => last + count)).result;
  }
}

/** Notes up to which session a sweep is about to look; never lowers it. */
export async function raiseSwept(deps: BucketDeps, upTo: number): Promise<void> {
  await SWEPT.change(deps, (swept) => Math.max(swept, upTo));
}

/**
 * Checks that the job's counter has given a session number that `witness` has. The witness must have
 * been read before this call.
 * @throws JOB_DAMAGED if it has not: the counter has fallen back, and would give numbers a second time.
 */
export async function requireCounted(
  { counter, job }: { readonly counter: SessionCounter; readonly job: Pick<JobSettings, "job"> },
  session: number,
  witness: string,
): Promise<void> {
  const given = await counter.last();
  if (given >= session) return;
  throw new PserverError(
    "JOB_DAMAGED",
    `job ${job.job}: the counter of sessions stands at ${given}, but ${witness} has session ${session}: ` +
      "the job's bucket has lost records, or is an older copy",
    { job: job.job, expected: session, received: given },
  );
}

/** A record of one session number; 0 if there is none. */
function numberRecord(key: string): BucketRecord<number> {
  const parse = (stored: KvEntry | undefined): number =>
    stored === undefined
      ? 0
      : readRecord(stored.value, key, (fields) => integerField(fields, "session"));
  return new BucketRecord(key, parse, (session) => ({ format: RECORD_FORMAT, session }));
}
