import type { BufferPool } from "../../transport/buffer-pool.ts";

/** Bytes of pieces on their way to the broker. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;

/** Bytes copied ahead of changes, beyond which no more should be made. */
const COPIED_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The memory that the snapshots of all shards of one worker may take beside the values: all of them
 * may be made at one time, as after a burst of updates to a whole model.
 */
export class SnapshotBudget {
  /** Memory of the pieces and copies. */
  readonly pool: BufferPool;
  readonly #waiting: { readonly bytes: number; readonly admit: () => void }[] = [];
  #inFlightBytes = 0;
  #copiedBytes = 0;
  #lastCut: Promise<unknown> = Promise.resolve();

  constructor(pool: BufferPool) {
    this.pool = pool;
  }

  /** Whether the copies are so many that what makes more of them should wait. */
  get isSpent(): boolean {
    return this.#copiedBytes >= COPIED_BYTES_MAX;
  }

  /** Bytes held in copies. */
  get copiedBytes(): number {
    return this.#copiedBytes;
  }

  /**
   * Runs one cut after the other: a shard that waits for copies to go holds records that it was
   * sent already, and all shards at one time would hold many.
   */
  async turn<Result>(cut: () => Promise<Result>): Promise<Result> {
    const result = this.#lastCut.then(cut);
    // How an earlier cut ended is its shard's matter.
    this.#lastCut = result.catch(() => undefined);
    return await result;
  }

  /** Waits for room for a piece, in order; one larger than all room goes alone. */
  acquire(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ bytes, admit: resolve });
      this.#admit();
    });
  }

  /** Gives back what {@link acquire} took. */
  release(bytes: number): void {
    this.#inFlightBytes -= bytes;
    this.#admit();
  }

  /** So many bytes more, or fewer, are held in copies. */
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
