import { busy, type PserverError } from "../../protocol/index.ts";
import { Shares } from "../requests/shares.ts";

/** Requests that may wait for one kind of thing in one shard; then askers are told BUSY. */
const WAITING = { each: 2_048, all: 8_192 } as const;

/** What becomes of a request now: it goes on waiting, is answered, or is refused. */
export type Verdict = "wait" | "answer" | PserverError;

/** A request that may have to wait for what it wants. */
export interface Visit<Wanted> {
  /** The trainer that asks, or host. */
  readonly from: string;
  readonly wanted: Wanted;
  readonly waitMs: number;
  /** Called once, now or later, unless {@link refuse} is. */
  readonly run: () => void;
  readonly refuse: (error: PserverError) => void;
}

/** Requests of one shard that wait, each for a limited time, until a judge lets them go. */
export class WaitingRoom<Wanted> {
  readonly #shard: number;
  readonly #judge: (wanted: Wanted) => Verdict;
  readonly #tooLate: (wanted: Wanted, waitMs: number) => PserverError;
  readonly #shares: Shares = new Shares(WAITING);
  readonly #timers: Map<Visit<Wanted>, NodeJS.Timeout> = new Map();

  constructor(options: {
    readonly shard: number;
    readonly judge: (wanted: Wanted) => Verdict;
    /** What a request is told whose time has passed. */
    readonly tooLate: (wanted: Wanted, waitMs: number) => PserverError;
  }) {
    this.#shard = options.shard;
    this.#judge = options.judge;
    this.#tooLate = options.tooLate;
  }

  /** Answers or refuses a request now, or when {@link WaitingRoom.review} or its time says so. */
  enter(visit: Visit<Wanted>): void {
    const { wanted, waitMs } = visit;
    if (this.#settle(visit)) return;
    if (!this.#shares.take(visit.from, 1)) {
      const expected = WAITING.each;
      const text = `shard ${this.#shard}: expected at most ${expected} requests of a trainer that wait, and room for all`;
      visit.refuse(busy(text, { shard: this.#shard, expected }));
      return;
    }
    const timer = setTimeout(() => {
      this.#leave(visit);
      visit.refuse(this.#tooLate(wanted, waitMs));
    }, waitMs);
    this.#timers.set(visit, timer);
  }

  /** How many wait. */
  get size(): number {
    return this.#timers.size;
  }

  /** What those that wait want. */
  *wanted(): Iterable<Wanted> {
    for (const { wanted } of this.#timers.keys()) yield wanted;
  }

  /** Asks the judge again about all that wait. */
  review(): void {
    for (const visit of this.#timers.keys()) this.#settle(visit);
  }

  /** Refuses all that wait. */
  refuseAll(error: PserverError): void {
    for (const visit of this.#timers.keys()) {
      this.#leave(visit);
      visit.refuse(error);
    }
  }

  /** Whether the judge has let the request go. */
  #settle(visit: Visit<Wanted>): boolean {
    const verdict = this.#judge(visit.wanted);
    if (verdict === "wait") return false;
    this.#leave(visit);
    if (verdict === "answer") visit.run();
    else visit.refuse(verdict);
    return true;
  }

  #leave(visit: Visit<Wanted>): void {
    clearTimeout(this.#timers.get(visit));
    if (this.#timers.delete(visit)) this.#shares.giveBack(visit.from, 1);
  }
}
