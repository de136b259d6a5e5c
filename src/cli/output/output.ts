import { once } from "node:events";
import type { Writable } from "node:stream";
import { visible } from "../../protocol/errors.ts";
import { formatBytes, formatDuration } from "./amounts.ts";
import { makePaint, type Paint, type TextFormat, wantsAnimation, wantsColor } from "./colors.ts";
import { visibleColored, visibleJson, visibleLines, wrapMessage } from "./wrap.ts";

const REDRAW_MS = 100;
const ERASE_LINE = "\r\u001b[2K";

/** Shows the progress of long work on one line that is replaced again and again. */
export class Progress {
  readonly #show: ((line: string) => void) | undefined;
  readonly #what: string;
  readonly #now: () => number;
  readonly #amount: (amount: number) => string;
  readonly #startedMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  /**
   * Prepares a line of progress, which `show` shows in place of the one before; an empty one removes it. Without `show`
   * every call does nothing. `amount` prints amounts of what is done, by default bytes.
   */
  constructor(
    what: string,
    show: ((line: string) => void) | undefined,
    now: () => number = () => performance.now(),
    amount: (amount: number) => string = formatBytes,
  ) {
    this.#what = what;
    this.#show = show;
    this.#now = now;
    this.#amount = amount;
    this.#startedMs = now();
  }

  /** Updates the amounts done and in all; redraws at most ten times a second. */
  update(done: number, total?: number): void {
    const now = this.#now();
    if (this.#show === undefined || now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#drawn = true;
    this.#show(this.#line(done, total, now - this.#startedMs));
  }

  /** Shows the elapsed time until `work` ends, then removes the line. */
  async during<T>(work: Promise<T>): Promise<T> {
    const timer = setInterval(() => this.update(0), REDRAW_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
      this.clear();
    }
  }

  /** Shows what `work` reports as done and in all until it ends, then removes the line. */
  async reported<T>(
    work: (onProgress: (done: number, total: number) => void) => Promise<T>,
  ): Promise<T> {
    try {
      return await work((done, total) => this.update(done, total));
    } finally {
      this.clear();
    }
  }

  /** Removes the line, so that messages can follow. */
  clear(): void {
    if (this.#drawn) this.#show?.("");
    this.#drawn = false;
  }

  #line(done: number, total: number | undefined, elapsedMs: number): string {
    const elapsed = formatDuration(elapsedMs);
    if (total === undefined) return `${this.#what} ${elapsed}`;
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
    const amount = `${this.#amount(done)} of ${this.#amount(total)}`;
    const perSecond = elapsedMs > 0 ? Math.round((done / elapsedMs) * 1000) : 0;
    return `${this.#what} ${percent} %  ${amount}  ${elapsed}, ${this.#amount(perSecond)}/s`;
  }
}

/** A stream that may be a terminal. */
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** Where an {@link Output} prints. */
interface OutputTargets {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Gets lines of progress in place of the message stream; an empty line removes the one before. */
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** Flags of every command that say how it prints. */
export interface OutputFlags {
  readonly json?: boolean;
  /** False with `--no-color`. */
  readonly color?: boolean;
}

/** How an {@link Output} prints. */
interface OutputSettings extends TextFormat {
  readonly json: boolean;
  readonly isColored: boolean;
  readonly paintMessage: Paint;
  readonly messageWidth: number;
  /** Shows a line of progress; undefined if nobody wants to see it. */
  readonly showProgress: ((line: string) => void) | undefined;
  readonly clock: (() => Date) | undefined;
}

/**
 * Prints data on one stream and messages for people on the other. Control sequences are escaped here,
 * wherever they come from, except for colours where text may be coloured.
 */
export class Output {
  /** Whether data is to be JSON, one value a line. */
  readonly json: boolean;
  /** Styles text for the data stream. */
  readonly paint: Paint;
  /** Columns for lines of data; infinite if not known. */
  readonly width: number;
  readonly #data: OutputStream;
  readonly #messages: OutputStream;
  readonly #settings: OutputSettings;

  private constructor(data: OutputStream, messages: OutputStream, settings: OutputSettings) {
    this.#data = data;
    this.#messages = messages;
    this.#settings = settings;
    this.json = settings.json;
    this.paint = settings.paint;
    this.width = settings.width;
  }

  /**
   * Opens an output on two streams. With `clock` messages and warnings begin with the time, in ISO form: they
   * are a log.
   */
  static open(
    { stdout, stderr, onProgress }: OutputTargets,
    environment: Readonly<Record<string, string | undefined>>,
    flags: OutputFlags,
    clock?: () => Date,
  ): Output {
    const noColor = flags.color === false;
    const isColored = wantsColor(stdout.isTTY === true, environment, noColor);
    return new Output(stdout, stderr, {
      json: flags.json === true,
      isColored,
      paint: makePaint(isColored),
      width: lineWidth(stdout, environment),
      paintMessage: makePaint(wantsColor(stderr.isTTY === true, environment, noColor)),
      messageWidth: messageWidth(stderr),
      showProgress: onProgress ?? progressOn(stderr, environment),
      clock,
    });
  }

  /** Prints lines of data; names in coloured ones must be `visible` already. */
  lines(lines: readonly string[]): void {
    const shown = lines.map(this.#settings.isColored ? visibleColored : visible);
    if (lines.length > 0) this.#data.write(`${shown.join("\n")}\n`);
  }

  /** Prints one JSON value on one line of data. */
  value(value: unknown): void {
    this.#data.write(`${visibleJson(value)}\n`);
  }

  /**
   * Prints chunks of data unchanged, no faster than the reader takes them.
   * @throws the signal's reason if it is aborted while the reader takes nothing.
   */
  async stream(chunks: Iterable<string | Uint8Array>, signal: AbortSignal): Promise<void> {
    for (const chunk of chunks) {
      if (!this.#data.write(chunk)) await this.#untilDrained(signal);
    }
  }

  async #untilDrained(signal: AbortSignal): Promise<void> {
    try {
      await once(this.#data, "drain", { signal });
    } catch (error) {
      // `once` throws an error of its own, which does not say what has aborted it.
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Prints a message for people; nothing with `--json`. */
  message(text: string): void {
    if (!this.json) this.#tell(visible(text));
  }

  /** Prints a warning for people, with `--json` as an object on the message stream. */
  warning(text: string): void {
    const prefix = this.#settings.paintMessage("warn", "warning:");
    if (!this.json) this.#tell(`${prefix} ${visibleLines(text)}`);
    else this.#messages.write(`${visibleJson({ time: this.#time(), warning: text })}\n`);
  }

  /**
   * Shows the progress of long work; does nothing if the message stream is no terminal, and nobody else wants to see
   * it. `amount` prints amounts of what is done, by default bytes.
   */
  progress(what: string, amount?: (amount: number) => string): Progress {
    const show = this.json ? undefined : this.#settings.showProgress;
    return new Progress(what, show, undefined, amount);
  }

  #tell(text: string): void {
    const time = this.#time();
    const lines = time === undefined ? text : `${time} ${text}`;
    this.#messages.write(`${wrapMessage(lines, this.#settings.messageWidth)}\n`);
  }

  #time(): string | undefined {
    return this.#settings.clock?.().toISOString();
  }
}

/** Returns what shows lines of progress on a terminal; undefined for any other stream. */
function progressOn(
  stream: OutputStream,
  environment: Readonly<Record<string, string | undefined>>,
): ((line: string) => void) | undefined {
  if (!wantsAnimation(stream.isTTY === true, environment)) return undefined;
  return (line) => stream.write(ERASE_LINE + line);
}

/** Returns the columns of a terminal; infinite for any other stream, which programs may read. */
export function messageWidth({ isTTY, columns }: OutputStream): number {
  // A terminal that does not know its size has 0 columns.
  const isKnown = isTTY === true && columns !== undefined && columns > 0;
  return isKnown ? columns : Number.POSITIVE_INFINITY;
}

/** Returns the columns of the terminal, or else those in the variable COLUMNS. */
function lineWidth(
  stream: OutputStream,
  environment: Readonly<Record<string, string | undefined>>,
): number {
  const columns = messageWidth(stream);
  if (Number.isFinite(columns)) return columns;
  const variable = environment["COLUMNS"] ?? "";
  return /^[1-9][0-9]{0,5}$/.test(variable) ? Number(variable) : Number.POSITIVE_INFINITY;
}
