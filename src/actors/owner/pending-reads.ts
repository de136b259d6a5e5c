import { busy, type PserverError } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import { Shares } from "../requests/shares.ts";

/** Limits of the pending requests of one kind in one shard; beyond them, askers get BUSY. */
const PENDING = { each: 2_048, all: 8_192 } as const;

/** What to do with a request now. */
export type Evaluation =
  | { readonly kind: "wait" }
  | { readonly kind: "answer" }
  | { readonly kind: "refuse"; readonly error: PserverError };

export const WAIT: Evaluation = { kind: "wait" };
export const ANSWER: Evaluation = { kind: "answer" };

/** A request that may have to wait until the fold has progressed. */
export interface PendingRead<Wanted> {
  /** Key of the trainer or host that asks. */
  readonly from: string;
  readonly wanted: Wanted;
  readonly waitMs: number;
  /** Called once, now or later, unless {@link refuse} is. */
  readonly run: () => void;
  readonly refuse: (error: PserverError) => void;
}

/** Pending requests of one shard, re-evaluated after each fold. */
export class PendingReads<Wanted> {
  readonly #shard: number;
  readonly #evaluate: (wanted: Wanted) => Evaluation;
  readonly #timeout: (wanted: Wanted, waitMs: number) => PserverError;
  readonly #clock: Clock;
  readonly #shares: Shares = new Shares(PENDING);
  /** Functions that cancel the timeouts. */
  readonly #reads: Map<PendingRead<Wanted>, () => void> = new Map();

  constructor(options: {
    readonly shard: number;
    readonly evaluate: (wanted: Wanted) => Evaluation;
    /** The error for a request that has waited for its time. */
    readonly timeout: (wanted: Wanted, waitMs: number) => PserverError;
    readonly clock?: Clock | undefined;
  }) {
    this.#shard = options.shard;
    this.#evaluate = options.evaluate;
    this.#timeout = options.timeout;
    this.#clock = options.clock ?? systemClock;
  }

  /** Answers or refuses a request now, at a later {@link evaluateAll}, or after its time. */
  add(read: PendingRead<Wanted>): void {
    const { from, wanted, waitMs } = read;
    if (this.#settle(read)) return;
    if (!this.#shares.take(from, 1)) {
      const expected = PENDING.each;
      const text = `shard ${this.#shard}: expected at most ${expected} pending requests of one trainer and ${PENDING.all} in all`;
      read.refuse(busy(text, { shard: this.#shard, expected }));
      return;
    }
    const cancel = this.#clock.after(waitMs, () => {
      this.#remove(read);
      read.refuse(this.#timeout(wanted, waitMs));
    });
    this.#reads.set(read, cancel);
  }

  /** Number of pending requests. */
  get size(): number {
    return this.#reads.size;
  }

  /** What the pending requests want. */
  *wanted(): Iterable<Wanted> {
    for (const { wanted } of this.#reads.keys()) yield wanted;
  }

  /** Answers or refuses all pending requests that need not wait any longer. */
  evaluateAll(): void {
    for (const read of this.#reads.keys()) this.#settle(read);
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    for (const read of this.#reads.keys()) {
      this.#remove(read);
      read.refuse(error);
    }
  }

  /** Answers or refuses a request unless it has to wait; false if it has to. */
  #settle(read: PendingRead<Wanted>): boolean {
    const evaluation = this.#evaluate(read.wanted);
    if (evaluation.kind === "wait") return false;
    this.#remove(read);
    if (evaluation.kind === "answer") read.run();
    else read.refuse(evaluation.error);
    return true;
  }

  #remove(read: PendingRead<Wanted>): void {
    this.#reads.get(read)?.();
    if (this.#reads.delete(read)) this.#shares.giveBack(read.from, 1);
  }
}
