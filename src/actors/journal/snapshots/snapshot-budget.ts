import type { BufferPool } from "../../../transport/buffers.ts";
import { AT_ONCE, type PutOff, SnapshotPace } from "./snapshot-pace.ts";

/** Limit of the bytes in flight to the broker. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Limit of the bytes in copies; beyond it, records that need more copies wait. Updates of random rows change all blocks
 * of a shard in one step, and each has to be copied while a cut of the shard is stored.
 */
const COPIED_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Limits the memory that snapshots take beside the values, and when their pieces are stored, for all shards of a
 * worker: their snapshots may all become due at once, as after a burst of updates to a whole model.
 */
export class SnapshotBudget {
  /** Pool for messages and copies. */
  readonly pool: BufferPool;
  readonly #pace: SnapshotPace = new SnapshotPace({ holdsUp: () => this.isSpent });
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
   * Runs one cut after the other: a shard that waits until copies are released holds back delivered records, and all
   * shards at once would hold back many. `putOff`: how long the cut may take; it and those before it are not put off
   * without.
   */
  async runInOrder<Result>(cut: () => Promise<Result>, putOff: PutOff = AT_ONCE): Promise<Result> {
    const turn = this.#pace.join(putOff);
    const result = this.#lastCut.then(cut).finally(() => this.#pace.leave(turn));
    // The error of an earlier cut is for its own shard.
    this.#lastCut = result.catch(() => undefined);
    return await result;
  }

  /** Notes how many bytes the cut has whose turn it is. */
  begin(bytes: number): void {
    this.#pace.begin(bytes);
  }

  /** Notes that records were folded, or a request was worked on. */
  worked(): void {
    this.#pace.worked();
  }

  /** Must be called when a journal has grown, or when a cut may be put off no longer. */
  poke(): void {
    this.#pace.poke();
  }

  /**
   * Waits, in order, until so many more bytes may be sent. More bytes than the limit are sent alone. Returns also when
   * the cut has ended meanwhile.
   */
  async acquire(bytes: number): Promise<void> {
    await this.#pace.admit(bytes);
    await new Promise<void>((resolve) => {
      this.#waiting.push({ bytes, admit: resolve });
      this.#admit();
    });
  }

  /** Releases what {@link acquire} admitted. */
  release(bytes: number): void {
    this.#inFlightBytes -= bytes;
    this.#admit();
  }

  /** Counts bytes in copies; a negative number when they are released. */
  copied(bytes: number): void {
    this.#copiedBytes += bytes;
    if (this.isSpent) this.#pace.poke();
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
