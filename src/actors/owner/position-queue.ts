import {
  type Fallback,
  fallbacksSince,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import { JournalEnd } from "./journal-end.ts";
import { type Verdict, type Visit, WaitingRoom } from "./waiting-room.ts";

/** A position that a request needs, and who asks. */
export interface WantedPosition extends Position {
  /** Id of the trainer or host. */
  readonly asker: string;
}

/** What a {@link PositionQueue} works with. */
export interface PositionQueueOptions {
  readonly shard: number;
  /** What the shard did not keep of journals that were replaced. */
  readonly fallbacks: () => readonly Fallback[];
  /** The last sequence of the journal of a generation; undefined if there is no such stream. */
  readonly lastSeq: (generation: number) => Promise<number | undefined>;
  /** An asker was told that the journal ends before the position that it has seen. */
  readonly onLost: (error: PserverError, wanted: WantedPosition) => void;
  readonly clock?: Clock;
}

/** A request's position, and how many looks at the journal had begun when it came. */
type Awaited = WantedPosition & { readonly looks: number };

/** Requests that are answered once the fold of a shard has reached a position. */
export class PositionQueue {
  readonly #shard: number;
  readonly #fallbacks: PositionQueueOptions["fallbacks"];
  readonly #onLost: PositionQueueOptions["onLost"];
  readonly #room: WaitingRoom<Awaited>;
  readonly #end: JournalEnd;
  #folded: Position = { generation: 0, seq: 0 };

  constructor({ shard, fallbacks, lastSeq, onLost, clock }: PositionQueueOptions) {
    this.#shard = shard;
    this.#fallbacks = fallbacks;
    this.#onLost = onLost;
    this.#room = new WaitingRoom({
      shard,
      judge: (wanted) => this.#judge(wanted),
      tooLate: (wanted, waitMs) => this.#tooLate(wanted, waitMs),
    });
    this.#end = new JournalEnd({
      lastSeq,
      awaited: () => this.#latest(),
      onKnown: () => this.#room.review(),
      clock,
    });
  }

  /**
   * Runs `run` now if the fold at `folded` is as far as `wanted`, else when {@link advance} gets
   * there; calls `refuse` after `waitMs`, with JOURNAL_REPLACED for a position of an old journal,
   * with JOURNAL_LOST as soon as it is known that the journal does not reach the position, or with
   * BUSY if too many wait.
   */
  at(folded: Position, { wanted, ...visit }: Visit<WantedPosition>): void {
    this.#folded = folded;
    this.#room.enter({ ...visit, wanted: { ...wanted, looks: this.#end.looks } });
    if (this.#room.size > 0) this.#end.watch();
  }

  /** Runs what waited for a position up to `folded`; what waited in an old journal is refused. */
  advance(folded: Position): void {
    this.#folded = folded;
    this.#room.review();
  }

  /** Refuses all that wait. */
  refuseAll(error: PserverError): void {
    this.#room.refuseAll(error);
  }

  #judge(wanted: Awaited): Verdict {
    const folded = this.#folded;
    if (wanted.seq === 0) return "answer";
    if (wanted.generation < folded.generation) return this.#replaced(wanted);
    if (wanted.generation > folded.generation) return "wait";
    if (wanted.seq <= folded.seq) return "answer";
    const known = this.#end.known;
    // A look that began before the request came knows nothing of a record that was stored meanwhile.
    const isLost =
      known?.generation === wanted.generation &&
      known.look > wanted.looks &&
      known.lastSeq < wanted.seq;
    return isLost ? this.#lost(wanted, known.lastSeq) : "wait";
  }

  /** The latest position of the present journal that somebody waits for. */
  #latest(): Position | undefined {
    let latest: Position | undefined;
    for (const wanted of this.#room.wanted()) {
      if (wanted.generation !== this.#folded.generation) continue;
      if (latest === undefined || wanted.seq > latest.seq) latest = wanted;
    }
    return latest;
  }

  #lost(wanted: Awaited, lastSeq: number): PserverError {
    const { generation, seq, asker } = wanted;
    const error = new PserverError(
      "JOURNAL_LOST",
      `shard ${this.#shard}: the journal ends at record ${lastSeq}; record ${seq}, which the asker ` +
        "has seen, is lost",
      {
        shard: this.#shard,
        expected: { generation, seq: lastSeq },
        received: { generation, seq },
      },
    );
    this.#onLost(error, { generation, seq, asker });
    return error;
  }

  #tooLate({ generation, seq }: Position, waitMs: number): PserverError {
    return new PserverError(
      "TIMEOUT",
      `shard ${this.#shard}: position ${seq} was not folded within ${waitMs} ms`,
      { shard: this.#shard, expected: { generation, seq }, received: this.#folded },
    );
  }

  #replaced({ generation, seq }: Position): PserverError {
    const folded = this.#folded;
    return new PserverError(
      "JOURNAL_REPLACED",
      `shard ${this.#shard}: position ${seq} is of journal generation ${generation}; ` +
        `generation ${folded.generation} has replaced it`,
      {
        shard: this.#shard,
        expected: folded,
        received: { generation, seq },
        fallbacks: fallbacksSince(this.#fallbacks(), generation),
      },
    );
  }
}
