const NANOSECONDS_PER_MS = 1_000_000;

/**
 * The time until which each shard's lease is held. It is shared between the main thread, which renews,
 * and the workers, which must stop answering by themselves when renewals stop. Times are of the process's
 * monotonic clock, which all threads share.
 */
export class LeaseClock {
  readonly buffer: SharedArrayBuffer;
  readonly #heldUntil: BigInt64Array;

  /** `buffer`: of the clock on another thread; without it a new one for `shards` shards is made. */
  constructor(shards: number, buffer?: SharedArrayBuffer) {
    this.buffer = buffer ?? new SharedArrayBuffer(shards * BigInt64Array.BYTES_PER_ELEMENT);
    this.#heldUntil = new BigInt64Array(this.buffer);
  }

  /** Notes that the lease of a shard is held for `remainingMs` from now. */
  extend(shard: number, remainingMs: number): void {
    const until = process.hrtime.bigint() + BigInt(Math.round(remainingMs * NANOSECONDS_PER_MS));
    Atomics.store(this.#heldUntil, shard, until);
  }

  /** Notes that the lease of a shard is not held. */
  end(shard: number): void {
    Atomics.store(this.#heldUntil, shard, 0n);
  }

  /** Whether the lease of a shard is held at this moment. */
  held(shard: number): boolean {
    return process.hrtime.bigint() < Atomics.load(this.#heldUntil, shard);
  }
}
