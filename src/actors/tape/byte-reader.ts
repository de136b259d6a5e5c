import { PserverError } from "../../protocol/errors.ts";

/** Reads what {@link ByteWriter} wrote. Every method throws BAD_MESSAGE at the end of the bytes. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Whether all has been read. */
  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  uint8(): number {
    return this.#bytes[this.#take(1)] as number;
  }

  /** @throws BAD_MESSAGE also for a number above 2^53 − 1. */
  varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 56; scale *= 0x80) {
      const byte = this.uint8();
      value += (byte & 0x7f) * scale;
      if (byte >= 0x80) continue;
      if (value <= Number.MAX_SAFE_INTEGER) return value;
      break;
    }
    throw new PserverError("BAD_MESSAGE", `tape: expected a number up to 2^53 at byte ${this.#at}`);
  }

  float32(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  float64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** Bytes after their number: a view. */
  block(): Uint8Array {
    const length = this.varint();
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  #take(bytes: number): number {
    const start = this.#at;
    if (start + bytes > this.#bytes.length) {
      throw new PserverError("BAD_MESSAGE", `tape: the lines end within one, at byte ${start}`);
    }
    this.#at = start + bytes;
    return start;
  }
}
