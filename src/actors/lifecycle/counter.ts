import type { BucketDeps, BucketEntry, Changed } from "./lock.ts";

interface Waiter {
  readonly count: number;
  readonly resolve: (first: number) => void;
  readonly reject: (reason: unknown) => void;
}

/** Dependencies of {@link Counter}. */
interface CounterDeps extends BucketDeps {
  /** The entry of the last number that was given; 0 before the first. */
  readonly entry: BucketEntry<number>;
  /** Returns a number up to which numbers are known to have been given, whatever the entry says. */
  readonly floor?: () => number;
  /** Checks the last number before it is given. */
  readonly check?: (last: number) => void;
}

/**
 * Hands out consecutive numbers of a job: each is given once, and later ones are higher. Requests that come while a
 * write is under way share the next write, so that many may ask at once. The host limits how many wait by limiting the
 * requests that it works on.
 */
export class Counter {
  readonly #deps: CounterDeps;
  #waiting: Waiter[] = [];
  #isCounting = false;

  constructor(deps: CounterDeps) {
    this.#deps = deps;
  }

  /** Takes `count` new numbers and returns the first. @throws as {@link BucketEntry.change} and the check do. */
  take(count: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ count, resolve, reject });
      if (!this.#isCounting) void this.#count();
    });
  }

  /** Returns the last number given; 0 before the first. */
  async last(): Promise<number> {
    return await this.#deps.entry.read(this.#deps);
  }

  async #count(): Promise<void> {
    this.#isCounting = true;
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      const total = waiting.reduce((sum, { count }) => sum + count, 0);
      try {
        let first = (await this.#add(total)).result - total + 1;
        for (const { count, resolve } of waiting) {
          resolve(first);
          first += count;
        }
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
    }
    this.#isCounting = false;
  }

  /** Takes `count` new numbers; returns the last. Numbers whose write got no answer are skipped. */
  #add(count: number): Promise<Changed<number>> {
    const { entry, floor, check } = this.#deps;
    return entry.change(this.#deps, (given) => {
      const last = Math.max(given, floor?.() ?? 0) + count;
      check?.(last);
      return last;
    });
  }
}
