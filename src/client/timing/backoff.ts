const FIRST_MS = 50;
const MAX_MS = 500;

/**
 * Growing delays between attempts: from 50 ms, doubled up to 500 ms, each shortened at random by up to a
 * quarter so that trainers that failed together do not retry together.
 */
export class Backoff {
  #nextMs = FIRST_MS;

  /** The delay before the next attempt. */
  nextMs(): number {
    const baseMs = this.#nextMs;
    this.#nextMs = Math.min(baseMs * 2, MAX_MS);
    return baseMs * (0.75 + Math.random() * 0.25);
  }
}
