import { mismatch, PserverError } from "../../protocol/errors.ts";

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

/**
 * Shares the memory for arrays among all connections, first come, first served. A request takes all that
 * it needs at once, so it holds nothing while it waits.
 */
export class MemoryBudget {
  readonly bytesMax: number;
  #freeBytes: number;
  readonly #waiting: Waiting[] = [];

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    this.#freeBytes = bytesMax;
  }

  get freeBytes(): number {
    return this.#freeBytes;
  }

  /**
   * Runs `work` once so many bytes are free, and holds them meanwhile.
   * @throws TOO_LARGE if the budget is smaller, ABORTED if `signal` ends the wait; what `work` throws.
   */
  async with<T>(bytes: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (bytes > this.bytesMax) {
      const expected = `one that takes at most ${this.bytesMax} bytes`;
      throw mismatch("TOO_LARGE", "request", expected, `one of ${bytes}`);
    }
    await this.#take(bytes, signal);
    try {
      return await work();
    } finally {
      this.#freeBytes += bytes;
      this.#grant();
    }
  }

  #take(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#waiting.length === 0 && bytes <= this.#freeBytes) {
      this.#freeBytes -= bytes;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(new PserverError("ABORTED", "request: the connection ended before its turn"));
        this.#grant();
      };
      const grant = (): void => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const waiting = { bytes, grant };
      this.#waiting.push(waiting);
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
    });
  }

  #grant(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first.bytes > this.#freeBytes) return;
      this.#waiting.shift();
      this.#freeBytes -= first.bytes;
      first.grant();
    }
  }
}
