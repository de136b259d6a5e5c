import { busy, type PserverError } from "../../protocol/index.ts";
import { FairQueue } from "../requests/fair-queue.ts";
import { QUEUED_BYTES, REQUEST_BYTES, TURN_MS } from "../requests/queue-limits.ts";
import type { Refusals } from "../requests/refusals.ts";
import { Turn } from "../requests/turn.ts";

/** A request to a shard. */
export interface Arrival {
  /** Key of the trainer or host that asks; unlike any trainer's for a host. */
  readonly from: string;
  /** Valid during {@link Intake.take} only. */
  readonly data: Uint8Array;
  /** Works on the request; it must not throw. */
  readonly run: (data: Uint8Array) => void;
  readonly refuse: (error: PserverError) => void;
}

/**
 * Schedules the requests to the shards of a worker. Requests run as they arrive until the time of one
 * turn of the event loop is used up; the others wait, and are taken from each trainer in turn.
 */
export class Intake {
  readonly #queue: FairQueue<Pick<Arrival, "data" | "run">> = new FairQueue(QUEUED_BYTES);
  readonly #refusals: Refusals;
  readonly #turn: Turn = new Turn(TURN_MS, () => {
    this.#refusals.review();
    this.#work();
  });

  /** `refusals`: limits how often a trainer is told BUSY, and is shared with the connection. */
  constructor(refusals: Refusals) {
    this.#refusals = refusals;
  }

  /** Runs a request now or later, or refuses it with BUSY. */
  take({ from, data, run, refuse }: Arrival): void {
    const mayRun = this.#queue.size === 0 && !this.#turn.isOver;
    this.#turn.begin();
    if (mayRun) {
      run(data);
      return;
    }
    // A copy: the view would keep the whole receive buffer alive.
    const task = { data: Uint8Array.from(data), run };
    if (this.#queue.push(from, task, REQUEST_BYTES + data.length)) return;
    if (!this.#refusals.take(from)) return;
    const [expected, all] = [QUEUED_BYTES.each / REQUEST_BYTES, QUEUED_BYTES.all / REQUEST_BYTES];
    const text = `expected at most ${expected} waiting requests of one trainer and ${all} in all`;
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
