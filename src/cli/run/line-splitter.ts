const LF = 0x0a;
const CR = 0x0d;

/** The longest line that is not cut. */
export const LINE_BYTES_MAX = 64 * 1024;

/**
 * Cuts bytes into lines, without their ends: LF, CR LF, or CR alone as progress bars write it. A line that
 * is too long is cut into pieces, between characters of UTF-8.
 */
export class LineSplitter {
  readonly #bytesMax: number;
  #rest: Buffer = Buffer.alloc(0);
  #afterReturn = false;

  constructor(bytesMax = LINE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that `chunk` ends. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      const isSecondHalf = byte === LF && this.#afterReturn;
      this.#afterReturn = byte === CR;
      if (byte !== LF && byte !== CR) continue;
      if (!isSecondHalf) lines.push(...this.#take(chunk.subarray(from, at)), this.#flush());
      from = at + 1;
    }
    lines.push(...this.#take(chunk.subarray(from)));
    return lines;
  }

  /** The bytes after the last end of a line, if there are any. */
  end(): Buffer[] {
    return this.#rest.length === 0 ? [] : [this.#flush()];
  }

  /** Adds bytes to the current line; returns what exceeds the longest line, in pieces. */
  #take(bytes: Buffer): Buffer[] {
    const pieces: Buffer[] = [];
    let line = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (line.length > this.#bytesMax) {
      const end = characterEnd(line, this.#bytesMax);
      pieces.push(line.subarray(0, end));
      line = line.subarray(end);
    }
    this.#rest = line;
    return pieces;
  }

  #flush(): Buffer {
    const line = this.#rest;
    this.#rest = Buffer.alloc(0);
    return line;
  }
}

/** The end of the last whole character before `end`; `end` itself if the bytes are no UTF-8. */
function characterEnd(bytes: Buffer, end: number): number {
  for (let at = end; at > end - 4 && at > 0; at--) {
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at;
  }
  return end;
}
