import { formatBytes, formatDuration } from "./amounts.ts";

const REDRAW_MS = 100;
const ERASE_LINE = "\r\u001b[2K";

/** Shows the progress of long work on one line that is overwritten. */
export class Progress {
  readonly #write: ((text: string) => void) | undefined;
  readonly #what: string;
  readonly #now: () => number;
  readonly #show: (amount: number) => string;
  readonly #startedMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  /**
   * Without `write`, if the output is no terminal, every call does nothing. `show` prints amounts of what is
   * done, by default bytes.
   */
  constructor(
    what: string,
    write: ((text: string) => void) | undefined,
    now: () => number = () => performance.now(),
    show: (amount: number) => string = formatBytes,
  ) {
    this.#what = what;
    this.#write = write;
    this.#now = now;
    this.#show = show;
    this.#startedMs = now();
  }

  /** Updates the amounts done and in all; redraws at most ten times a second. */
  update(done: number, total?: number): void {
    const now = this.#now();
    if (this.#write === undefined || now - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = now;
    this.#drawn = true;
    this.#write(ERASE_LINE + this.#line(done, total, now - this.#startedMs));
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
    if (this.#drawn) this.#write?.(ERASE_LINE);
    this.#drawn = false;
  }

  #line(done: number, total: number | undefined, elapsedMs: number): string {
    const elapsed = formatDuration(elapsedMs);
    if (total === undefined) return `${this.#what} ${elapsed}`;
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
    const amount = `${this.#show(done)} of ${this.#show(total)}`;
    const perSecond = elapsedMs > 0 ? Math.round((done / elapsedMs) * 1000) : 0;
    return `${this.#what} ${percent} %  ${amount}  ${elapsed}, ${this.#show(perSecond)}/s`;
  }
}
