import { integerField } from "../../protocol/index.ts";
import type { Records } from "../jetstream/kv-bucket.ts";
import { change } from "./compare-and-swap.ts";
import { SESSION_KEY } from "./keys.ts";
import { RECORD_FORMAT, readRecord } from "./lifecycle-record.ts";

interface Waiter {
  readonly resolve: (session: number) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Hands out the session numbers of a job: each is given once, and a later one is higher. Those
 * who ask while a write is under way share the next one, so that many may join at once. The host
 * bounds how many wait by bounding the requests it works on.
 */
export class SessionCounter {
  readonly #records: Records;
  readonly #pause: (delayMs: number) => Promise<void>;
  #waiting: Waiter[] = [];
  #isCounting = false;

  constructor(records: Records, pause: (delayMs: number) => Promise<void>) {
    this.#records = records;
    this.#pause = pause;
  }

  /** The next number; @throws as {@link change} does. */
  next(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (!this.#isCounting) void this.#count();
    });
  }

  /** The last number given; 0 before the first. */
  async last(): Promise<number> {
    const stored = await this.#records.read(SESSION_KEY);
    return stored === undefined ? 0 : readCounter(stored.value);
  }

  async #count(): Promise<void> {
    this.#isCounting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        let session = (await this.#add(batch.length)) - batch.length;
        for (const { resolve } of batch) resolve(++session);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isCounting = false;
  }

  /** The last of so many new numbers. Those whose write went unanswered are left out. */
  async #add(count: number): Promise<number> {
    const { result } = await change({
      records: this.#records,
      key: SESSION_KEY,
      pause: this.#pause,
      decide: (current) => {
        const before = current === undefined ? 0 : readCounter(current.value);
        const last = before + count;
        return { write: { format: RECORD_FORMAT, session: last }, result: last };
      },
    });
    return result;
  }
}

function readCounter(value: unknown): number {
  return readRecord(value, SESSION_KEY, (fields) => integerField(fields, "session"));
}
