import type { Chunk, Lender } from "./chunk.ts";

/**
 * Buffer that a socket is read into; holds the received bytes that have not been consumed. Views of
 * it can be lent, and do not change until they are given back: reading continues behind them, or in
 * another memory when too little is free. Two memories alternate as long as views come back in time;
 * more exist only while they are lent.
 */
export class ReadBuffer {
  readonly #capacityBytes: number;
  readonly #freeBytesMin: number;
  #memory: Memory;
  /** Memory without lent views, to be used next. */
  #spare: Memory | undefined;
  #start = 0;
  #end = 0;

  /** The capacity grows for longer data; {@link target} has at least `freeBytesMin` bytes. */
  constructor(capacityBytes: number, freeBytesMin: number) {
    this.#capacityBytes = capacityBytes;
    this.#freeBytesMin = freeBytesMin;
    this.#memory = this.#newMemory(capacityBytes);
  }

  /** Received bytes that have not been consumed; valid until {@link pass}. */
  get pending(): Buffer {
    return this.#memory.bytes.subarray(this.#start, this.#end);
  }

  /** Memory to read the next bytes into. */
  target(): Buffer {
    return this.#memory.bytes.subarray(this.#end);
  }

  /** Notes that this many bytes were read into {@link target}. */
  took(bytes: number): void {
    this.#end += bytes;
  }

  /** A view of the pending bytes between two positions; must be given back. */
  lend(from: number, to: number): Chunk {
    return this.#memory.lend(this.#start + from, this.#start + to);
  }

  /** Consumes the first pending bytes, and makes space for the next ones. */
  pass(bytes: number): void {
    this.#start += bytes;
    const freeBytes = this.#memory.bytes.length - this.#end;
    if (this.#memory.isLent && freeBytes >= this.#freeBytesMin) return;
    const { pending } = this;
    const memory = this.#memoryFor(pending.length + this.#freeBytesMin);
    if (memory !== this.#memory || this.#start > 0) pending.copy(memory.bytes);
    this.#memory = memory;
    this.#start = 0;
    this.#end = pending.length;
  }

  /** Memory of at least this many bytes without lent views. */
  #memoryFor(bytes: number): Memory {
    const present = this.#memory;
    if (!present.isLent && present.bytes.length >= bytes) return present;
    // A line longer than the buffer must fit, too, such as the greeting of a huge cluster.
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

/** Memory, and the views of it that are lent. */
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
