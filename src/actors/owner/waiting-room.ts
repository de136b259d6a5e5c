import { PserverError } from "../../protocol/index.ts";

/** Requests that may wait for one kind of thing in one shard; then askers are told BUSY. */
const WAITING_MAX = 4_096;

/** What becomes of a request now: it goes on waiting, is answered, or is refused. */
export type Verdict = "wait" | "answer" | PserverError;

/** A request that may have to wait for what it wants. */
export interface Visit<Wanted> {
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
    if (this.#timers.size >= WAITING_MAX) {
      const text = `shard ${this.#shard}: more than ${WAITING_MAX} requests wait`;
      visit.refuse(new PserverError("BUSY", text));
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(visit);
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
    this.#timers.delete(visit);
  }
}
