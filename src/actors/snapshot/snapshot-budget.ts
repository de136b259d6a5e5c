import type { BufferPool } from "../../transport/buffer-pool.ts";

/** Limit of the bytes on their way to the broker. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;

/** Limit of the bytes in copies, beyond which records that need more copies wait. */
const COPIED_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Limits of the memory that snapshots take beside the values, for all shards of a worker: their
 * snapshots may all become due at once, as after a burst of updates to a whole model.
 */
export class SnapshotBudget {
  /** Pool for messages and copies. */
  readonly pool: BufferPool;
  readonly #waiting: { readonly bytes: number; readonly admit: () => void }[] = [];
  #inFlightBytes = 0;
  #copiedBytes = 0;
  #lastCut: Promise<unknown> = Promise.resolve();

  constructor(pool: BufferPool) {
    this.pool = pool;
  }

  /** Whether records that need more copies have to wait. */
  get isSpent(): boolean {
    return this.#copiedBytes >= COPIED_BYTES_MAX;
  }

  /** Bytes held in copies. */
  get copiedBytes(): number {
    return this.#copiedBytes;
  }

  /**
   * Runs one cut after the other: a shard that waits for copies to be released holds back delivered
   * records, and all shards at one time would hold back many.
   */
  async turn<Result>(cut: () => Promise<Result>): Promise<Result> {
    const result = this.#lastCut.then(cut);
    // The error of an earlier cut is for its own shard.
    this.#lastCut = result.catch(() => undefined);
    return await result;
  }

  /** Waits, in order, until so many more bytes may be sent; more than the limit are sent alone. */
  acquire(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ bytes, admit: resolve });
      this.#admit();
    });
  }

  /** Releases what {@link acquire} admitted. */
  release(bytes: number): void {
    this.#inFlightBytes -= bytes;
    this.#admit();
  }

  /** Counts bytes in copies; negative when they are released. */
  copied(bytes: number): void {
    this.#copiedBytes += bytes;
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#inFlightBytes > 0 && this.#inFlightBytes + next.bytes > IN_FLIGHT_BYTES_MAX) return;
      this.#waiting.shift();
      this.#inFlightBytes += next.bytes;
      next.admit();
    }
  }
}
