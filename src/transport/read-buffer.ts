import type { Chunk, Lender } from "./chunk.ts";

/**
 * Where a socket is read to: holds what has come and was not passed over yet. Views of it can be
 * lent, and what they show does not change until they are given back: reading goes on behind them,
 * and in other memory where there is too little room. Two pieces of memory take turns as long as
 * views come back in time; more exist only while views of them are out.
 */
export class ReadBuffer {
  readonly #capacityBytes: number;
  readonly #roomBytesMin: number;
  #memory: Memory;
  /** What all views have come back to, for the next turn. */
  #spare: Memory | undefined;
  #start = 0;
  #end = 0;

  /** The capacity grows for what does not fit; {@link target} has room for `roomBytesMin` or more. */
  constructor(capacityBytes: number, roomBytesMin: number) {
    this.#capacityBytes = capacityBytes;
    this.#roomBytesMin = roomBytesMin;
    this.#memory = this.#newMemory(capacityBytes);
  }

  /** What has come and was not passed over; it is valid until {@link pass}. */
  get pending(): Buffer {
    return this.#memory.bytes.subarray(this.#start, this.#end);
  }

  /** Where the next bytes are to be read to. */
  target(): Buffer {
    return this.#memory.bytes.subarray(this.#end);
  }

  /** So many bytes were read into what {@link target} gave. */
  took(bytes: number): void {
    this.#end += bytes;
  }

  /** A view of what is pending, between two positions in it, which is to be given back. */
  lend(from: number, to: number): Chunk {
    return this.#memory.lend(this.#start + from, this.#start + to);
  }

  /** Passes over the first bytes of what is pending, and makes room for the next ones. */
  pass(bytes: number): void {
    this.#start += bytes;
    const roomBytes = this.#memory.bytes.length - this.#end;
    if (this.#memory.isLent && roomBytes >= this.#roomBytesMin) return;
    const { pending } = this;
    const memory = this.#memoryFor(pending.length + this.#roomBytesMin);
    if (memory !== this.#memory || this.#start > 0) pending.copy(memory.bytes);
    this.#memory = memory;
    this.#start = 0;
    this.#end = pending.length;
  }

  /** Memory for so many bytes of which nothing is lent. */
  #memoryFor(bytes: number): Memory {
    const present = this.#memory;
    if (!present.isLent && present.bytes.length >= bytes) return present;
    // A line longer than the buffer, such as the greeting of a huge cluster, still has to fit.
    if (bytes > this.#capacityBytes) return this.#newMemory(2 * bytes);
    const spare = this.#spare ?? this.#newMemory(this.#capacityBytes);
    this.#spare = undefined;
    return spare;
  }

  #newMemory(bytes: number): Memory {
    return new Memory(bytes, (memory) => {
      if (memory !== this.#memory && bytes === this.#capacityBytes) this.#spare = memory;
    });
  }
}

/** A piece of memory, and which views of it are out. */
class Memory implements Lender {
  readonly bytes: Buffer;
  readonly #views: Set<Uint8Array> = new Set();
  readonly #onAllBack: (memory: Memory) => void;

  constructor(bytes: number, onAllBack: (memory: Memory) => void) {
    this.bytes = Buffer.allocUnsafeSlow(bytes);
    this.#onAllBack = onAllBack;
  }

  get isLent(): boolean {
    return this.#views.size > 0;
  }

  lend(start: number, end: number): Chunk {
    const view = this.bytes.subarray(start, end);
    this.#views.add(view);
    return { bytes: view, lender: this };
  }

  giveBack(view: Uint8Array): void {
    this.#views.delete(view);
    if (!this.isLent) this.#onAllBack(this);
  }
}
