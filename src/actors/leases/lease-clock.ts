const NANOSECONDS_PER_MS = 1_000_000;

/**
 * The time until which each shard's lease is held, and the number of its tenure: how often it was claimed
 * after a time in which another host may have held it. Both are shared between the main thread, which renews,
 * and the workers, which must stop answering by themselves when renewals stop. Times are of the process's
 * monotonic clock, which all threads share.
 */
export class LeaseClock {
  readonly buffer: SharedArrayBuffer;
  readonly #heldUntil: BigInt64Array;
  readonly #tenures: BigInt64Array;

  /** `buffer`: of the clock on another thread; without it a new one for `shards` shards is made. */
  constructor(shards: number, buffer?: SharedArrayBuffer) {
    const bytes = shards * BigInt64Array.BYTES_PER_ELEMENT;
    this.buffer = buffer ?? new SharedArrayBuffer(2 * bytes);
    this.#heldUntil = new BigInt64Array(this.buffer, 0, shards);
    this.#tenures = new BigInt64Array(this.buffer, bytes, shards);
  }

  /** Notes that the lease of a shard was claimed; {@link extend} follows. */
  claimed(shard: number): void {
    Atomics.store(this.#heldUntil, shard, 0n);
    Atomics.add(this.#tenures, shard, 1n);
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

  /** Number of the present tenure of a shard; undefined while its lease is not held. */
  tenure(shard: number): bigint | undefined {
    // In this order: a lease that was claimed in between has a new number, which nobody has proven yet.
    const isHeld = process.hrtime.bigint() < Atomics.load(this.#heldUntil, shard);
    return isHeld ? Atomics.load(this.#tenures, shard) : undefined;
  }
}
