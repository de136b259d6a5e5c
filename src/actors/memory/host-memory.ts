import { PserverError } from "../../protocol/index.ts";
import { freeMemoryBytes } from "./free-memory.ts";

/** A shard's memory grows by an eighth, so it may have so much more than its values. */
const GROWTH = 1.125;

/** What a shard takes beside its values: constants, scratch, tables. */
const SHARD_BYTES = 1024 * 1024;

/** How the memory of a host is counted. */
export interface HostMemoryOptions {
  readonly shards: number;
  /** The most that the host may use for values; by default what the system has. */
  readonly limitBytes?: number | undefined;
  /** The buffer of a count on another thread of the host. */
  readonly buffer?: SharedArrayBuffer;
  /** What the system has free. */
  readonly freeBytes?: () => number;
}

/** What the values of a shard need of a host's memory. */
export function neededBytes(valueBytes: number): number {
  return Math.ceil(valueBytes * GROWTH) + SHARD_BYTES;
}

/**
 * What the shards of a host take of its memory, counted for all its threads, so that a shard is not
 * taken over that does not fit: the system would end the host, and the next one after it.
 */
export class HostMemory {
  readonly buffer: SharedArrayBuffer;
  readonly #limitBytes: number;
  readonly #freeBytes: () => number;
  /** By shard, what it takes, or is going to. */
  readonly #taken: BigInt64Array;
  /** By shard, what it is going to take and the system still has. */
  readonly #coming: BigInt64Array;

  constructor(options: HostMemoryOptions) {
    const { shards, limitBytes = Number.POSITIVE_INFINITY, freeBytes = freeMemoryBytes } = options;
    const bytes = shards * BigInt64Array.BYTES_PER_ELEMENT;
    this.buffer = options.buffer ?? new SharedArrayBuffer(2 * bytes);
    this.#taken = new BigInt64Array(this.buffer, 0, shards);
    this.#coming = new BigInt64Array(this.buffer, bytes, shards);
    this.#limitBytes = limitBytes;
    this.#freeBytes = freeBytes;
  }

  /** Bytes that more shards or blocks may take. */
  get freeBytes(): number {
    return Math.min(this.#limitBytes - sum(this.#taken), this.#freeBytes() - sum(this.#coming));
  }

  /**
   * Sets aside what a shard with so many bytes of values needs, until {@link release}; of that it has
   * `heldBytes` already.
   * @throws NO_MEMORY if the host has less; nothing is set aside then.
   */
  reserve(shard: number, valueBytes: number, heldBytes = 0): void {
    const needed = neededBytes(valueBytes);
    this.release(shard);
    Atomics.store(this.#taken, shard, BigInt(needed));
    Atomics.store(this.#coming, shard, BigInt(Math.max(0, needed - heldBytes)));
    // Counted with what others set aside at the same moment: at worst both are refused, and try again.
    const free = this.freeBytes;
    if (free >= 0) return;
    this.release(shard);
    const received = Math.max(0, Math.floor(free + needed));
    throw new PserverError(
      "NO_MEMORY",
      `shard ${shard}: expected ${needed} bytes of free memory for its values; this host has ${received}`,
      { shard, expected: needed, received },
    );
  }

  /** A shard has so much memory now: what was set aside for it the system has given. */
  holds(shard: number, memoryBytes: number): void {
    Atomics.store(this.#taken, shard, BigInt(memoryBytes));
    Atomics.store(this.#coming, shard, 0n);
  }

  /** A shard takes nothing any more. */
  release(shard: number): void {
    Atomics.store(this.#taken, shard, 0n);
    Atomics.store(this.#coming, shard, 0n);
  }
}

function sum(bytes: BigInt64Array): number {
  let total = 0n;
  for (let shard = 0; shard < bytes.length; shard++) total += Atomics.load(bytes, shard);
  return Number(total);
}
