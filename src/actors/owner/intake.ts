import { busy, type PserverError } from "../../protocol/index.ts";
import { FairQueue } from "../requests/fair-queue.ts";
import { QUEUED_BYTES, REQUEST_BYTES, TURN_MS } from "../requests/queue-limits.ts";
import type { Refusals } from "../requests/refusals.ts";
import { Turn } from "../requests/turn.ts";

/** A request to a shard that has come. */
export interface Arrival {
  /** The trainer that asks, or host; a host's key is like no trainer's. */
  readonly from: string;
  /** Valid until the arrival was taken in. */
  readonly data: Uint8Array;
  /** Works on the request; it must not throw. */
  readonly run: (data: Uint8Array) => void;
  readonly refuse: (error: PserverError) => void;
}

/**
 * Takes in the requests to the shards of a worker. While there is time each is worked on as it comes;
 * what more comes in one turn of the event loop waits, and then trainers have their turns one after the
 * other.
 */
export class Intake {
  readonly #queue: FairQueue<Pick<Arrival, "data" | "run">> = new FairQueue(QUEUED_BYTES);
  readonly #refusals: Refusals;
  readonly #turn: Turn = new Turn(TURN_MS, () => {
    this.#refusals.review();
    this.#work();
  });

  /** `refusals`: as the connection is to know that the requests come through. */
  constructor(refusals: Refusals) {
    this.#refusals = refusals;
  }

  /** Works on a request now or later, or refuses it with BUSY. */
  take({ from, data, run, refuse }: Arrival): void {
    const mayRun = this.#queue.size === 0 && !this.#turn.isOver;
    this.#turn.begin();
    if (mayRun) {
      run(data);
      return;
    }
    // A copy: what came with it would be kept as long.
    const task = { data: Uint8Array.from(data), run };
    if (this.#queue.push(from, task, REQUEST_BYTES + data.length)) return;
    if (!this.#refusals.take(from)) return;
    const expected = QUEUED_BYTES.each / REQUEST_BYTES;
    const text = `expected at most ${expected} waiting requests of a trainer, and room for all`;
    refuse(busy(text, { expected }));
  }

  #work(): void {
    while (!this.#turn.isOver) {
      const served = this.#queue.next();
      if (served === undefined) return;
      this.#turn.begin();
      const { run, data } = served.task;
      run(data);
    }
  }
}
