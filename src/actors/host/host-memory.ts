import { PserverError } from "../../protocol/index.ts";
import { freeMemoryBytes } from "../../system/memory.ts";

/** A shard's memory grows by an eighth at a time, so it can be this much larger than its values. */
const GROWTH = 1.125;

/** Memory of a shard besides its values: constants, scratch, tables. */
const SHARD_BYTES = 1024 * 1024;

/** Options of {@link HostMemory}. */
interface HostMemoryOptions {
  readonly shards: number;
  /** The most that the host may use for values; limited only by the system by default. */
  readonly limitBytes?: number | undefined;
  /** The buffer of the `HostMemory` on another thread of the host. */
  readonly buffer?: SharedArrayBuffer;
  /** Returns the bytes that the system has free. */
  readonly freeBytes?: () => number;
}

/** Returns the memory that a shard needs for so many bytes of values. */
export function neededBytes(valueBytes: number): number {
  return Math.ceil(valueBytes * GROWTH) + SHARD_BYTES;
}

/**
 * Counts the memory of a host's shards for all its threads, so that no shard is taken over that does not fit: the
 * system would kill the host, and then the next host that takes the shard over.
 */
export class HostMemory {
  readonly buffer: SharedArrayBuffer;
  readonly #limitBytes: number;
  readonly #freeBytes: () => number;
  /** Bytes that each shard has or has reserved. */
  readonly #counted: BigInt64Array;
  /** Reserved bytes of each shard that it has not taken from the system yet. */
  readonly #reserved: BigInt64Array;

  private constructor(buffer: SharedArrayBuffer, options: HostMemoryOptions) {
    const { shards, limitBytes = Number.POSITIVE_INFINITY, freeBytes = freeMemoryBytes } = options;
    this.buffer = buffer;
    this.#counted = new BigInt64Array(buffer, 0, shards);
    this.#reserved = new BigInt64Array(buffer, this.#counted.byteLength, shards);
    this.#limitBytes = limitBytes;
    this.#freeBytes = freeBytes;
  }

  /** Counts in the buffer of the options, or in a new one. */
  static open(options: HostMemoryOptions): HostMemory {
    const bytes = 2 * options.shards * BigInt64Array.BYTES_PER_ELEMENT;
    return new HostMemory(options.buffer ?? new SharedArrayBuffer(bytes), options);
  }

  /** Bytes available to further shards or blocks. */
  get freeBytes(): number {
    return Math.min(this.#limitBytes - sum(this.#counted), this.#freeBytes() - sum(this.#reserved));
  }

  /**
   * Reserves memory for a shard with so many bytes of values, of which it has `heldBytes` already, until
   * {@link release}.
   * @throws NO_MEMORY if the host has less; nothing is reserved then.
   */
  reserve(shard: number, valueBytes: number, heldBytes = 0): void {
    const needed = neededBytes(valueBytes);
    this.release(shard);
    Atomics.store(this.#counted, shard, BigInt(needed));
    Atomics.store(this.#reserved, shard, BigInt(Math.max(0, needed - heldBytes)));
    // This counts what other threads reserve at the same moment: at worst both fail, and try again.
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

  /** Notes how much memory a shard has now: the system has provided what was reserved. */
  holds(shard: number, memoryBytes: number): void {
    Atomics.store(this.#counted, shard, BigInt(memoryBytes));
    Atomics.store(this.#reserved, shard, 0n);
  }

  /** Notes that a shard has no memory any more. */
  release(shard: number): void {
    Atomics.store(this.#counted, shard, 0n);
    Atomics.store(this.#reserved, shard, 0n);
  }
}

function sum(bytes: BigInt64Array): number {
  let total = 0n;
  for (let shard = 0; shard < bytes.length; shard++) total += Atomics.load(bytes, shard);
  return Number(total);
}
