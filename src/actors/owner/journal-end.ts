import type { Position } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";

/** Time before the first query for a request, and between two queries. */
const QUERY_AFTER_MS = 200;

/** End of a journal according to the broker. */
export interface KnownEnd {
  readonly generation: number;
  readonly lastSeq: number;
  /** Number of the query. */
  readonly query: number;
}

/**
 * Asks the broker for the last sequence of a generation, from which a wanted position can be told to be
 * lost; `tell` gets undefined if it is unknown.
 */
export type QueryLastSeq = (wanted: Position, tell: (lastSeq: number | undefined) => void) => void;

/** Dependencies of {@link JournalEnd}. */
export interface JournalEndDeps {
  readonly lastSeq: QueryLastSeq;
  /** The highest position of the present journal that a request waits for. */
  readonly awaited: () => Position | undefined;
  /** Called when {@link JournalEnd.known} has changed. */
  readonly onKnown: () => void;
  readonly clock?: Clock | undefined;
}

/**
 * The end of a shard's journal, queried while requests wait for a position above the fold. One query at
 * a time serves all requests, and none is made for the first moments: the fold is rarely far behind.
 */
export class JournalEnd {
  readonly #deps: JournalEndDeps;
  readonly #clock: Clock;
  #queries = 0;
  #known: KnownEnd | undefined;
  #isDue = false;

  constructor(deps: JournalEndDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
  }

  /** Number of queries begun. A request is evaluated by a later query than those begun before it. */
  get queries(): number {
    return this.#queries;
  }

  /** Result of the last successful query. */
  get known(): KnownEnd | undefined {
    return this.#known;
  }

  /** Queries soon, and repeatedly while requests wait; to be called for each new request. */
  watch(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(QUERY_AFTER_MS, () => this.#query());
  }

  #query(): void {
    const wanted = this.#deps.awaited();
    if (wanted === undefined || this.#reaches(wanted)) {
      this.#finish();
      return;
    }
    this.#queries += 1;
    const query = this.#queries;
    const { generation } = wanted;
    this.#deps.lastSeq(wanted, (lastSeq) => {
      // Without an answer, requests wait on, and get TIMEOUT in the end.
      if (lastSeq !== undefined) {
        this.#known = { generation, lastSeq, query };
        this.#deps.onKnown();
      }
      this.#finish();
    });
  }

  #finish(): void {
    this.#isDue = false;
    if (this.#deps.awaited() !== undefined) this.watch();
  }

  /** Whether the journal is known to reach a position. */
  #reaches({ generation, seq }: Position): boolean {
    return this.#known?.generation === generation && seq <= this.#known.lastSeq;
  }
}
