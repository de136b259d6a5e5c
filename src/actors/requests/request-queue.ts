import { busy, type PserverError, RETRY_AFTER_MS } from "../../protocol/index.ts";
import { FairQueue } from "./fair-queue.ts";
import { QUEUED_BYTES, REQUEST_BYTES } from "./queue-limits.ts";

/** A request that has come and is to be answered. */
export interface Request {
  readonly trainer: string;
  readonly verb: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** How much of one kind of work a host does at one time. */
export interface LaneOptions {
  readonly verbs: readonly string[];
  /** Requests worked on at one time. */
  readonly atOnce: number;
  /** Of them, those of one trainer. */
  readonly atOnceEach: number;
  /** What a waiting request counts for beside its own bytes, of the 16 MiB of one trainer. */
  readonly requestBytes?: number;
  /** What those are told that find no room. */
  readonly retryAfterMs?: number;
}

/** Requests of one kind: the trainers' turns come one after the other, a bounded number at a time. */
export class RequestLane {
  readonly #options: LaneOptions;
  readonly #waiting: FairQueue<Request> = new FairQueue(QUEUED_BYTES);
  readonly #running: Map<string, number> = new Map();
  #runningTotal = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Whether requests with this verb go here. */
  takes(verb: string): boolean {
    return this.#options.verbs.includes(verb);
  }

  /** Keeps a request until its turn; or else the BUSY that its trainer is to be told. */
  add(request: Request): PserverError | undefined {
    const { requestBytes = REQUEST_BYTES, retryAfterMs = RETRY_AFTER_MS } = this.#options;
    const cost = requestBytes + request.data.length;
    if (this.#waiting.push(request.trainer, request, cost)) return undefined;
    const { trainer, verb } = request;
    const expected = Math.floor(QUEUED_BYTES.each / requestBytes);
    const text = `${verb}: expected at most ${expected} waiting requests of a trainer, and room for all`;
    return busy(text, { trainer, expected }, retryAfterMs);
  }

  /** The request to work on now, which counts as running until {@link done}; undefined if none. */
  next(): Request | undefined {
    const { atOnce, atOnceEach } = this.#options;
    if (this.#runningTotal >= atOnce) return undefined;
    const served = this.#waiting.next((trainer) => this.#runningOf(trainer) < atOnceEach);
    if (served === undefined) return undefined;
    this.#running.set(served.trainer, this.#runningOf(served.trainer) + 1);
    this.#runningTotal++;
    return served.task;
  }

  /** A request has been answered. */
  done({ trainer }: Request): void {
    const left = this.#runningOf(trainer) - 1;
    if (left > 0) this.#running.set(trainer, left);
    else this.#running.delete(trainer);
    this.#runningTotal--;
  }

  /** Takes out all that wait. */
  *drain(): Generator<Request, void, undefined> {
    for (let served = this.#waiting.next(); served !== undefined; served = this.#waiting.next()) {
      yield served.task;
    }
  }

  #runningOf(trainer: string): number {
    return this.#running.get(trainer) ?? 0;
  }
}
