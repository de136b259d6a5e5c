import type { Readable } from "node:stream";
import type { OutputStream } from "../output/output.ts";
import { visibleExcept, visibleJson } from "../output/wrap.ts";

const LF = 0x0a;
const CR = 0x0d;

/** The longest line that is not cut. */
export const LINE_BYTES_MAX = 64 * 1024;

/**
 * Cuts bytes into lines, without their ends: LF, CR LF, or CR alone as progress bars write it. A line that is
 * too long is cut into several, between characters of UTF-8.
 */
export class LineSplitter {
  readonly #bytesMax: number;
  #rest: Buffer = Buffer.alloc(0);
  #afterReturn = false;

  constructor(bytesMax = LINE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Returns the lines that `chunk` ends. */
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

  /** Returns the bytes after the last end of a line, if there are any. */
  end(): Buffer[] {
    return this.#rest.length === 0 ? [] : [this.#flush()];
  }

  /** Adds bytes to the current line; returns what exceeds the longest line, cut into lines. */
  #take(bytes: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let line = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (line.length > this.#bytesMax) {
      const end = characterEnd(line, this.#bytesMax);
      lines.push(line.subarray(0, end));
      line = line.subarray(end);
    }
    this.#rest = line;
    return lines;
  }

  #flush(): Buffer {
    const line = this.#rest;
    this.#rest = Buffer.alloc(0);
    return line;
  }
}

/** Returns the end of the last whole character before `end`; `end` itself if the bytes are no UTF-8. */
function characterEnd(bytes: Buffer, end: number): number {
  for (let at = end; at > end - 4 && at > 0; at--) {
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at;
  }
  return end;
}

/** Which of a trainer's two streams a line came from. */
export type StreamName = "stdout" | "stderr";

/** How the output of trainers is shown. */
export interface TrainerOutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Styles the prefix of a rank, for each of the streams. */
  readonly paint: Readonly<Record<StreamName, (rank: number, prefix: string) => string>>;
  /** Lines as JSON on stdout instead, each with its rank and stream. */
  readonly json: boolean;
  /** How many trainers there are, so that prefixes have one width. */
  readonly count: number;
}

/** Colours and tabs, which a trainer may use on a terminal; other control sequences are escaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what it finds
const HARMLESS = /(\u001b\[[0-9;:]*m|\t)/;
const RESET = "\u001b[0m";

/** Prints one stream of a trainer, whose bytes arrive in chunks. */
export interface LinePrinter {
  /** Prints the lines that `bytes` complete; settles when the reader takes more. */
  print(bytes: Buffer): Promise<void>;
  /** Prints a last line that has no end. */
  end(): Promise<void>;
}

/** Prints the output of trainers in whole lines, each after the rank of its trainer. */
export class TrainerOutput {
  readonly #options: TrainerOutputOptions;
  readonly #drained = new Map<OutputStream, Promise<void>>();
  /** Streams whose reader is gone: what trainers write to them is dropped, so that they go on. */
  readonly #unread = new Set<OutputStream>();

  constructor(options: TrainerOutputOptions) {
    this.#options = options;
    for (const stream of [options.stdout, options.stderr]) {
      stream.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "EPIPE") this.#unread.add(stream);
      });
    }
  }

  /** Whether the reader of this process's output takes no more at present. */
  get isHeldUp(): boolean {
    return this.#drained.size > 0;
  }

  /** Prints a stream of a trainer until it ends; reads no faster than this process's output is read. */
  async follow(rank: number, name: StreamName, source: Readable): Promise<void> {
    const lines = this.printer(rank, name);
    for await (const chunk of source) await lines.print(chunk as Buffer);
    await lines.end();
  }

  /** Makes a printer of one stream of a trainer, for a caller that reads the stream itself. */
  printer(rank: number, name: StreamName): LinePrinter {
    const lines = new LineSplitter();
    const target = this.#target(name);
    return {
      print: async (bytes) => {
        if (!this.#unread.has(target)) await this.#print(rank, name, lines.push(bytes));
      },
      end: () => this.#print(rank, name, lines.end()),
    };
  }

  #target(name: StreamName): OutputStream {
    const { json, stdout } = this.#options;
    return json ? stdout : this.#options[name];
  }

  async #print(rank: number, name: StreamName, lines: readonly Buffer[]): Promise<void> {
    const target = this.#target(name);
    for (const line of lines) {
      if (this.#unread.has(target)) return;
      const isTaken = target.write(this.#shown(rank, name, line, target.isTTY === true));
      if (!isTaken) await this.#untilDrained(target);
    }
  }

  #shown(rank: number, name: StreamName, line: Buffer, isTerminal: boolean): string | Buffer {
    const { json, paint, count } = this.#options;
    if (json) return `${visibleJson({ rank, [name]: line.toString("utf8") })}\n`;
    const width = String(count - 1).length;
    const prefix = `${paint[name](rank, `[${String(rank).padStart(width)}]`)} `;
    if (isTerminal) return `${prefix}${harmless(line.toString("utf8"))}\n`;
    return Buffer.concat([Buffer.from(prefix), line, Buffer.from("\n")]);
  }

  /**
   * Waits until a stream takes more. All trainers share one wait, because the stream warns of too many
   * listeners. The wait also ends with an error, after which the stream does not drain.
   */
  #untilDrained(target: OutputStream): Promise<void> {
    const waiting = this.#drained.get(target);
    if (waiting !== undefined) return waiting;
    const drained = new Promise<void>((resolve) => {
      const settle = (): void => {
        target.off("drain", settle).off("error", settle);
        this.#drained.delete(target);
        resolve();
      };
      target.on("drain", settle).on("error", settle);
    });
    this.#drained.set(target, drained);
    return drained;
  }
}

function harmless(line: string): string {
  const shown = visibleExcept(line, HARMLESS);
  // Resets colours, which would otherwise continue in other trainers' lines.
  return shown.includes("\u001b[") ? `${shown}${RESET}` : shown;
}
