import { mismatch, PserverError } from "../../protocol/errors.ts";

/** How long a connection waits for its peer. */
export interface Timeouts {
  /** Between two requests. */
  readonly idleMs: number;
  /** For the next bytes of a request that has begun, and for the peer to take some of a reply. */
  readonly stallMs: number;
}

/** The slowest that a request may arrive: a slower peer would hold memory that others need. */
const BYTES_PER_MS_MIN = 64;

/**
 * Reads exact numbers of bytes from a stream of chunks cut anywhere. The stream is asked for a chunk only
 * when its bytes are wanted, so that a peer that sends more is held back.
 */
export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #timeouts: Timeouts;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncIterable<Uint8Array>, timeouts: Timeouts) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#timeouts = timeouts;
  }

  /** Waits for the next request; false if the stream ends before it. @throws TIMEOUT. */
  async hasMore(): Promise<boolean> {
    while (this.#rest.byteLength === 0) {
      if (!(await this.#next(this.#timeouts.idleMs, "next request"))) return false;
    }
    return true;
  }

  /**
   * Fills `target` with the next bytes.
   * @throws BAD_LENGTH if the stream ends before; TIMEOUT if nothing comes for a while, or less than 64 kB/s.
   */
  async fill(target: Uint8Array, what: string): Promise<void> {
    const { stallMs } = this.#timeouts;
    const endsAt = performance.now() + stallMs + target.byteLength / BYTES_PER_MS_MIN;
    for (let filled = 0; filled < target.byteLength; ) {
      const waitMs = Math.max(0, Math.min(stallMs, endsAt - performance.now()));
      if (this.#rest.byteLength === 0 && !(await this.#next(waitMs, what))) {
        const received = `${filled} before the connection ended`;
        throw mismatch("BAD_LENGTH", what, `${target.byteLength} bytes`, received);
      }
      const part = this.#rest.subarray(0, target.byteLength - filled);
      target.set(part, filled);
      filled += part.byteLength;
      this.#rest = this.#rest.subarray(part.byteLength);
    }
  }

  /** Discards everything until the stream ends. */
  async discard(): Promise<void> {
    while ((await this.#chunks.next()).done !== true);
  }

  async #next(waitMs: number, what: string): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const message = `${what}: nothing came for ${Math.round(waitMs)} ms`;
        reject(new PserverError("TIMEOUT", message, { timeoutMs: waitMs }));
      }, waitMs);
    });
    try {
      const chunk = this.#chunks.next();
      // After a timeout the connection is closed, which ends this read.
      chunk.catch(() => undefined);
      const { value, done } = await Promise.race([chunk, tooLate]);
      if (done === true) return false;
      this.#rest = value;
      return true;
    } finally {
      clearTimeout(timer);
    }
  }
}
