/**
 * Growing delays between attempts: from 50 ms, doubled up to 500 ms, each shortened at random by up to a
 * quarter so that trainers that failed together do not retry together.
 */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  #nextMs: number;

  constructor(firstMs = 50, maxMs = 500) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#nextMs = firstMs;
  }

  /** The delay before the next attempt. */
  nextMs(): number {
    const baseMs = this.#nextMs;
    this.#nextMs = Math.min(baseMs * 2, this.#maxMs);
    return baseMs * (0.75 + Math.random() * 0.25);
  }

  /** Starts over, after a success. */
  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
