import { formatBytes, formatDuration } from "./amounts.ts";

const REDRAW_MS = 100;
const ERASE_LINE = "\r\u001b[2K";

/** Shows how far long work has come, on one line that is written over; else nothing. */
export class Progress {
  readonly #write: ((text: string) => void) | undefined;
  readonly #what: string;
  readonly #now: () => number;
  readonly #startedMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  /** Without `write`, where the output is no terminal, every call does nothing. */
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

  /** Says how many bytes of how many are done; redraws at most ten times a second. */
  update(doneBytes: number, totalBytes?: number): void {
    const now = this.#now();
    if (this.#write === undefined || now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#drawn = true;
    this.#write(ERASE_LINE + this.#line(doneBytes, totalBytes, now - this.#startedMs));
  }

  /** Shows that `work` goes on until it ends, then takes the line away. */
  async during<T>(work: Promise<T>): Promise<T> {
    const timer = setInterval(() => this.update(0), REDRAW_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
      this.clear();
    }
  }

  /** Takes the line away; messages can follow. */
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
