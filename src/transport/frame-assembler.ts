import type { BufferPool } from "./buffer-pool.ts";

/** Bytes read at one time while no large message is under way; holds any control line. */
const READ_BYTES = 128 * 1024;

/** Messages from this size on get a buffer of their own, into which the socket is read. */
const LARGE_BYTES = 32 * 1024;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const DIGIT_0 = 0x30;
const LETTER_H = 0x48;
const LETTER_M = 0x4d;
const TRAILER_BYTES = 2;

/** Which large messages are lent, and where their memory comes from. */
export interface Lending {
  /** What their subjects begin with. */
  readonly prefix: string;
  /** May be shared with others of the same thread. */
  readonly pool: BufferPool;
}

/** What a {@link FrameAssembler} gives out: protocol bytes that begin and end between messages. */
export interface Chunk {
  readonly bytes: Buffer;
  /** Whether the buffer is lent: it is to be given back once its message has been handled. */
  readonly lent: boolean;
}

/**
 * Cuts what a broker sends at the borders of its messages, so that a large payload lies whole in
 * one buffer and is read into it by the kernel, without a copy. nats.js's parser then hands out a
 * view where it would otherwise gather the payload in a buffer that grows by doubling.
 *
 * Use: read into {@link target}, then tell {@link took} how many bytes came.
 */
export class FrameAssembler {
  readonly #emit: (chunk: Chunk) => void;
  readonly #lending: Lending | undefined;
  readonly #lentPrefix: Buffer;
  #read: Buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  #used = 0;
  /** The large message under way, and how much of it has come. */
  #frame: Buffer | undefined;
  #frameLent = false;
  #filled = 0;

  /** `lending`: the large messages that are lent; all others keep their buffers. */
  constructor(emit: (chunk: Chunk) => void, lending?: Lending) {
    this.#emit = emit;
    this.#lending = lending;
    this.#lentPrefix = Buffer.from(lending?.prefix ?? "");
  }

  /** Where the next bytes are to be read to. */
  target(): Buffer {
    return this.#frame === undefined
      ? this.#read.subarray(this.#used)
      : this.#frame.subarray(this.#filled);
  }

  /** So many bytes were read into what {@link target} gave. */
  took(bytes: number): void {
    if (this.#frame === undefined) {
      this.#used += bytes;
      this.#scan();
      return;
    }
    this.#filled += bytes;
    if (this.#filled === this.#frame.length) this.#finishFrame(this.#frame);
  }

  /** Takes a lent buffer back. */
  giveBack(bytes: Buffer): void {
    this.#lending?.pool.giveBack(bytes);
  }

  #finishFrame(frame: Buffer): void {
    this.#frame = undefined;
    this.#emit({ bytes: frame, lent: this.#frameLent });
  }

  /** Emits what is whole in the read buffer and begins the frame of a large message. */
  #scan(): void {
    let start = 0;
    let at = 0;
    for (;;) {
      const newline = this.#read.subarray(0, this.#used).indexOf(NEWLINE, at);
      if (newline < 0) break;
      const end = newline + 1 + this.#payloadBytes(at, newline);
      if (end - at >= LARGE_BYTES) {
        this.#emitSmall(start, at);
        start = this.#beginFrame(at, newline, end);
        at = start;
      } else if (end <= this.#used) {
        at = end;
      } else break;
    }
    this.#emitSmall(start, at);
    this.#read.copyWithin(0, at, this.#used);
    this.#used -= at;
    if (this.#used === this.#read.length) this.#grow();
  }

  /** Bytes after the line of a message: payload and trailer; 0 for any other line. */
  #payloadBytes(at: number, newline: number): number {
    const first = this.#read[at];
    if (first !== LETTER_M && first !== LETTER_H) return 0;
    // The size is the last number of the line.
    let size = 0;
    let scale = 1;
    for (let i = newline - TRAILER_BYTES; i > at && this.#read[i] !== SPACE; i--) {
      size += ((this.#read[i] ?? DIGIT_0) - DIGIT_0) * scale;
      scale *= 10;
    }
    return size + TRAILER_BYTES;
  }

  /** Moves what has come of a large message into a buffer of its own; returns where to go on. */
  #beginFrame(at: number, newline: number, end: number): number {
    const available = Math.min(end, this.#used);
    const bytes = end - at;
    const pool = this.#poolFor(at, newline);
    const frame = pool?.take(bytes) ?? Buffer.allocUnsafeSlow(bytes);
    this.#frameLent = pool !== undefined;
    this.#read.copy(frame, 0, at, available);
    if (available === end) {
      this.#finishFrame(frame);
    } else {
      this.#frame = frame;
      this.#filled = available - at;
    }
    return available;
  }

  /** Where the memory of a message with this line comes from, if it is lent. */
  #poolFor(at: number, newline: number): BufferPool | undefined {
    if (this.#lending === undefined) return undefined;
    const subject = this.#read.indexOf(SPACE, at) + 1;
    const end = subject + this.#lentPrefix.length;
    const isLent = end < newline && this.#read.subarray(subject, end).equals(this.#lentPrefix);
    return isLent ? this.#lending.pool : undefined;
  }

  /** A copy, because the read buffer is written to again. */
  #emitSmall(start: number, end: number): void {
    if (end > start)
      this.#emit({ bytes: Buffer.from(this.#read.subarray(start, end)), lent: false });
  }

  /** A line longer than the buffer, such as the greeting of a huge cluster, still has to fit. */
  #grow(): void {
    const larger = Buffer.allocUnsafeSlow(this.#read.length * 2);
    this.#read.copy(larger, 0, 0, this.#used);
    this.#read = larger;
  }
}
