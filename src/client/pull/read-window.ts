import { type Deadline, orObstacle } from "../calls/calls.ts";

/** A request that waits for a place. */
interface Waiter {
  readonly shard: number;
  readonly bytes: number;
  readonly deadline: Deadline;
  readonly admit: () => void;
}

/**
 * Share of the window that must be free before waiting requests are admitted: then many are, and go to the
 * broker in one write.
 */
const FREE_SHARE = 0.25;

/**
 * Bounds the bytes under way: requests that do not fit wait in order. A request that its shard refuses for the time
 * being has none under way. It makes place for requests to other shards, and those to its own wait for it.
 */
export class ReadWindow {
  readonly #bytesMax: () => number;
  readonly #waiters = new Set<Waiter>();
  /** How many requests each shard refuses at present; absent for 0. */
  readonly #refused = new Map<number, number>();
  #bytes = 0;

  /** Makes an empty window of so many bytes; how many is asked each time. */
  constructor(bytesMax: () => number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes under way. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Waits until the bytes of a request fit; more bytes than the window has are admitted alone. {@link ReadPlace.leave}
   * must be called when the request is over.
   * @throws what ends the call: at its timeout, what keeps another request of the call from being answered.
   */
  async enter(shard: number, bytes: number, deadline: Deadline): Promise<ReadPlace> {
    const mayPass = deadline.ended === undefined && this.#waiters.size === 0;
    if (!mayPass || !this.#admits(shard, bytes)) {
      await new Promise<void>((resolve, reject) => {
        const admit = (): void => {
          stopListening();
          resolve();
        };
        const waiter: Waiter = { shard, bytes, deadline, admit };
        this.#waiters.add(waiter);
        const stopListening = deadline.onEnd((error) => {
          this.#waiters.delete(waiter);
          reject(orObstacle(error, deadline.obstacle()));
          this.#admit();
        });
        this.#admit();
      });
    } else {
      this.#bytes += bytes;
    }
    return new ReadPlace({
      refused: () => {
        this.#bytes -= bytes;
        this.#refused.set(shard, this.#refusedBy(shard) + 1);
        this.#admit();
      },
      left: (isRefused) => {
        if (isRefused) this.#settle(shard);
        else this.#bytes -= bytes;
        for (const waiter of this.#waiters) waiter.deadline.progressed();
        if (this.#bytes <= this.#bytesMax() * (1 - FREE_SHARE)) this.#admit();
      },
    });
  }

  #refusedBy(shard: number): number {
    return this.#refused.get(shard) ?? 0;
  }

  #settle(shard: number): void {
    const left = this.#refusedBy(shard) - 1;
    if (left === 0) this.#refused.delete(shard);
    else this.#refused.set(shard, left);
  }

  #admits(shard: number, bytes: number): boolean {
    return !this.#refused.has(shard) && this.#fits(bytes);
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax();
  }

  #admit(): void {
    for (const waiter of this.#waiters) {
      const { shard, bytes, admit } = waiter;
      if (this.#refused.has(shard)) continue;
      if (!this.#fits(bytes)) return;
      this.#waiters.delete(waiter);
      this.#bytes += bytes;
      admit();
    }
  }
}

/** The place of one request in a {@link ReadWindow}. */
export class ReadPlace {
  readonly #events: { readonly refused: () => void; readonly left: (isRefused: boolean) => void };
  #isRefused = false;

  /** `events` are called at most once each. */
  constructor(events: {
    readonly refused: () => void;
    readonly left: (isRefused: boolean) => void;
  }) {
    this.#events = events;
  }

  /** Notes that the request was refused and is sent again later; until it is over it has no bytes under way. */
  refused(): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    this.#events.refused();
  }

  /** Gives the place back. For those that wait that is progress. */
  leave(): void {
    this.#events.left(this.#isRefused);
  }
}
