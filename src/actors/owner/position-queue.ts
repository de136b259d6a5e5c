import {
  type Fallback,
  fallbacksSince,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import { JournalEnd, type QueryLastSeq } from "./journal-end.ts";
import { ANSWER, type Evaluation, type PendingRead, PendingReads, WAIT } from "./pending-reads.ts";

/** A position that a request needs, and who asks. */
export interface WantedPosition extends Position {
  /** Id of the trainer or host. */
  readonly asker: string;
}

/** Dependencies of {@link PositionQueue}. */
export interface PositionQueueDeps {
  readonly shard: number;
  /** What the shard lost of journals that were replaced. */
  readonly fallbacks: () => readonly Fallback[];
  readonly lastSeq: QueryLastSeq;
  /** Called when an asker gets JOURNAL_LOST because the journal ends before its position. */
  readonly onLost: (error: PserverError, wanted: WantedPosition) => void;
  readonly clock?: Clock;
}

/** A request's position, with the number of queries of the journal's end that preceded the request. */
type Awaited = WantedPosition & { readonly queries: number };

/** Requests that are answered once the fold of a shard has reached a position. Does no I/O. */
export class PositionQueue {
  readonly #deps: PositionQueueDeps;
  readonly #reads: PendingReads<Awaited>;
  readonly #end: JournalEnd;
  #folded: Position = { generation: 0, seq: 0 };

  constructor(deps: PositionQueueDeps) {
    const { shard, lastSeq, clock } = deps;
    this.#deps = deps;
    this.#reads = new PendingReads({
      shard,
      evaluate: (wanted) => this.#evaluate(wanted),
      timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
      clock,
    });
    this.#end = new JournalEnd({
      lastSeq,
      awaited: () => this.#highest(),
      onKnown: () => this.#reads.evaluateAll(),
      clock,
    });
  }

  /**
   * Runs `run` once the fold, now at `folded`, has reached the wanted position. Calls `refuse` with
   * TIMEOUT after `waitMs`, JOURNAL_REPLACED for a position in an old journal, JOURNAL_LOST when the
   * journal is known to end before the position, or BUSY if too many requests are pending.
   */
  at(folded: Position, { wanted, ...read }: PendingRead<WantedPosition>): void {
    this.#folded = folded;
    this.#reads.add({ ...read, wanted: { ...wanted, queries: this.#end.queries } });
    if (this.#reads.size > 0) this.#end.watch();
  }

  /** Answers requests for positions up to `folded`, and refuses those for an old journal. */
  advance(folded: Position): void {
    this.#folded = folded;
    this.#reads.evaluateAll();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.#reads.refuseAll(error);
  }

  #evaluate(wanted: Awaited): Evaluation {
    const folded = this.#folded;
    if (wanted.seq === 0) return ANSWER;
    if (wanted.generation < folded.generation) return this.#refuseReplaced(wanted);
    if (wanted.generation > folded.generation) return WAIT;
    if (wanted.seq <= folded.seq) return ANSWER;
    const known = this.#end.known;
    // A query that began before the request may have missed a record stored in between.
    const isLost =
      known?.generation === wanted.generation &&
      known.query > wanted.queries &&
      known.lastSeq < wanted.seq;
    return isLost ? this.#refuseLost(wanted, known.lastSeq) : WAIT;
  }

  /** The highest position of the present journal that a request waits for. */
  #highest(): Position | undefined {
    let highest: Position | undefined;
    for (const wanted of this.#reads.wanted()) {
      if (wanted.generation !== this.#folded.generation) continue;
      if (highest === undefined || wanted.seq > highest.seq) highest = wanted;
    }
    return highest;
  }

  #refuseLost(wanted: Awaited, lastSeq: number): Evaluation {
    const { shard, onLost } = this.#deps;
    const { generation, seq, asker } = wanted;
    const error = new PserverError(
      "JOURNAL_LOST",
      `shard ${shard}: the journal ends at record ${lastSeq}; record ${seq}, which the asker ` +
        "has seen, is lost",
      { shard, expected: { generation, seq: lastSeq }, received: { generation, seq } },
    );
    onLost(error, { generation, seq, asker });
    return { kind: "refuse", error };
  }

  #refuseReplaced({ generation, seq }: Position): Evaluation {
    const { shard, fallbacks } = this.#deps;
    const folded = this.#folded;
    const error = new PserverError(
      "JOURNAL_REPLACED",
      `shard ${shard}: position ${seq} is of journal generation ${generation}; ` +
        `generation ${folded.generation} has replaced it`,
      {
        shard,
        expected: folded,
        received: { generation, seq },
        fallbacks: fallbacksSince(fallbacks(), generation),
      },
    );
    return { kind: "refuse", error };
  }

  #timeout({ generation, seq }: Position, waitMs: number): PserverError {
    const { shard } = this.#deps;
    return new PserverError(
      "TIMEOUT",
      `shard ${shard}: position ${seq} was not folded within ${waitMs} ms`,
      { shard, expected: { generation, seq }, received: this.#folded },
    );
  }
}
