import type { Deadline } from "../timing/deadline.ts";

interface Waiter {
  readonly bytes: number;
  readonly admit: () => void;
}

/**
 * Waiters are admitted when this share of the window is free: many at a time, whose requests then go to
 * the broker in one write.
 */
const FREE_SHARE = 0.25;

/** Bounds the bytes under way: what does not fit waits in order. */
export class ByteWindow {
  readonly #bytesMax: number;
  readonly #waiters = new Set<Waiter>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes under way. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Waits until the bytes fit; more than the window is admitted alone. @throws what ends the call. */
  async acquire(bytes: number, deadline: Deadline): Promise<void> {
    if (deadline.ended === undefined && this.#waiters.size === 0 && this.#fits(bytes)) {
      this.#bytes += bytes;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        bytes,
        admit: () => {
          stopListening();
          resolve();
        },
      };
      this.#waiters.add(waiter);
      const stopListening = deadline.onEnd((error) => {
        this.#waiters.delete(waiter);
        reject(error);
        this.#admit();
      });
      this.#admit();
    });
  }

  /** Releases what {@link acquire} took. */
  release(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#bytes <= this.#bytesMax * (1 - FREE_SHARE)) this.#admit();
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }

  #admit(): void {
    for (const waiter of this.#waiters) {
      if (!this.#fits(waiter.bytes)) return;
      this.#waiters.delete(waiter);
      this.#bytes += waiter.bytes;
      waiter.admit();
    }
  }
}
