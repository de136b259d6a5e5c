/**
 * The messages of a raw measurement: ranges of one array, one after the other and again from its
 * beginning, so that as many bytes are read from memory as a trainer or host would read.
 */
export class Payloads {
  readonly #source: Uint8Array;
  readonly #bytes: number;
  #at = 0;

  /** Makes messages of `bytes` out of at least `sourceBytes`. */
  constructor(bytes: number, sourceBytes: number) {
    this.#bytes = bytes;
    // Filled, because pages that were never written share one page of memory.
    this.#source = new Uint8Array(Math.ceil(sourceBytes / bytes) * bytes).fill(1);
  }

  /** Returns the next message; a view. */
  next(): Uint8Array {
    const payload = this.#source.subarray(this.#at, this.#at + this.#bytes);
    this.#at = (this.#at + this.#bytes) % this.#source.length;
    return payload;
  }
}
