import { busy, type PserverError, RETRY_AFTER_MS } from "../../protocol/index.ts";
import { FairQueue } from "./fair-queue.ts";
import { QUEUED_BYTES, REQUEST_BYTES } from "./queue-limits.ts";

/** A request that has arrived and is to be answered. */
export interface Request {
  readonly trainer: string;
  readonly verb: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** What one queue takes, and how much of it a host works on at one time. */
export interface RequestQueueOptions {
  readonly verbs: readonly string[];
  /** Requests in work at one time. */
  readonly atOnce: number;
  /** Of them, at most so many of one trainer. */
  readonly atOnceEach: number;
  /** Cost of a waiting request besides its own bytes, of the 16 MiB that one trainer has. */
  readonly requestBytes?: number;
  /** Waiting time that a refusal names. */
  readonly retryAfterMs?: number;
}

/** Requests of one kind, served in turns of the trainers, a limited number at a time. */
export class RequestQueue {
  readonly #options: RequestQueueOptions;
  readonly #waiting: FairQueue<Request> = new FairQueue(QUEUED_BYTES);
  readonly #running: Map<string, number> = new Map();
  #runningTotal = 0;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
  }

  /** Whether requests with this verb belong here. */
  takes(verb: string): boolean {
    return this.#options.verbs.includes(verb);
  }

  /** Keeps a request until its turn; or returns the BUSY to refuse it with. */
  add(request: Request): PserverError | undefined {
    const { requestBytes = REQUEST_BYTES, retryAfterMs = RETRY_AFTER_MS } = this.#options;
    const cost = requestBytes + request.data.length;
    if (this.#waiting.push(request.trainer, request, cost)) return undefined;
    const { trainer, verb } = request;
    const expected = Math.floor(QUEUED_BYTES.each / requestBytes);
    const text = `${verb}: expected at most ${expected} waiting requests of a trainer, and space for all`;
    return busy(text, { trainer, expected }, retryAfterMs);
  }

  /** The request to work on next, which counts as running until {@link done}; undefined if none. */
  next(): Request | undefined {
    const { atOnce, atOnceEach } = this.#options;
    if (this.#runningTotal >= atOnce) return undefined;
    const served = this.#waiting.next((trainer) => this.#runningOf(trainer) < atOnceEach);
    if (served === undefined) return undefined;
    this.#running.set(served.trainer, this.#runningOf(served.trainer) + 1);
    this.#runningTotal++;
    return served.task;
  }

  /** Ends the work on a request. */
  done({ trainer }: Request): void {
    const left = this.#runningOf(trainer) - 1;
    if (left > 0) this.#running.set(trainer, left);
    else this.#running.delete(trainer);
    this.#runningTotal--;
  }

  /** Removes and returns all waiting requests. */
  *drain(): Generator<Request, void, undefined> {
    for (let served = this.#waiting.next(); served !== undefined; served = this.#waiting.next()) {
      yield served.task;
    }
  }

  #runningOf(trainer: string): number {
    return this.#running.get(trainer) ?? 0;
  }
}
