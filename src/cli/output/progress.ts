import { formatBytes, formatDuration } from "./amounts.ts";

const REDRAW_MS = 100;
const ERASE_LINE = "\r\u001b[2K";

/** Shows the progress of long work on one line that is overwritten. */
export class Progress {
  readonly #write: ((text: string) => void) | undefined;
  readonly #what: string;
  readonly #now: () => number;
  readonly #startedMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  /** Without `write`, if the output is no terminal, every call does nothing. */
  constructor(
    what: string,
    write: ((text: string) => void) | undefined,
    now: () => number = () => performance.now(),
  ) {
    this.#what = what;
    this.#write = write;
    this.#now = now;
    this.#startedMs = now();
  }

  /** Updates the bytes done and in all; redraws at most ten times a second. */
  update(doneBytes: number, totalBytes?: number): void {
    const now = this.#now();
    if (this.#write === undefined || now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#drawn = true;
    this.#write(ERASE_LINE + this.#line(doneBytes, totalBytes, now - this.#startedMs));
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

  /** Removes the line, so that messages can follow. */
  clear(): void {
    if (this.#drawn) this.#write?.(ERASE_LINE);
    this.#drawn = false;
  }

  #line(doneBytes: number, totalBytes: number | undefined, elapsedMs: number): string {
    const elapsed = formatDuration(elapsedMs);
    if (totalBytes === undefined) return `${this.#what} ${elapsed}`;
    const percent = totalBytes === 0 ? 100 : Math.floor((doneBytes / totalBytes) * 100);
    const amount = `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`;
    const perSecond = elapsedMs > 0 ? Math.round((doneBytes / elapsedMs) * 1000) : 0;
    return `${this.#what} ${percent} %  ${amount}  ${elapsed}, ${formatBytes(perSecond)}/s`;
  }
}
