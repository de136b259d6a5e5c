import { type Position, PserverError } from "../../protocol/index.ts";
import { type Verdict, type Visit, WaitingRoom } from "./waiting-room.ts";

/** Requests that are answered once the fold of a shard has reached a position. */
export class PositionQueue {
  readonly #shard: number;
  readonly #room: WaitingRoom<Position>;
  #folded: Position = { generation: 0, seq: 0 };

  constructor(shard: number) {
    this.#shard = shard;
    this.#room = new WaitingRoom({
      shard,
      judge: (wanted) => this.#judge(wanted),
      tooLate: (wanted, waitMs) => this.#tooLate(wanted, waitMs),
    });
  }

  /**
   * Runs `run` now if the fold at `folded` is as far as `wanted`, else when {@link advance} gets
   * there; calls `refuse` after `waitMs`, with JOURNAL_REPLACED for a position of an old journal,
   * or with BUSY if too many wait.
   */
  at(folded: Position, visit: Visit<Position>): void {
    this.#folded = folded;
    this.#room.enter(visit);
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

  #judge(wanted: Position): Verdict {
    const folded = this.#folded;
    if (wanted.seq === 0) return "answer";
    if (wanted.generation < folded.generation) return this.#replaced(wanted);
    return wanted.generation === folded.generation && wanted.seq <= folded.seq ? "answer" : "wait";
  }

  #tooLate(wanted: Position, waitMs: number): PserverError {
    return new PserverError(
      "TIMEOUT",
      `shard ${this.#shard}: position ${wanted.seq} was not folded within ${waitMs} ms`,
      { shard: this.#shard, expected: wanted, received: this.#folded },
    );
  }

  #replaced(wanted: Position): PserverError {
    const folded = this.#folded;
    return new PserverError(
      "JOURNAL_REPLACED",
      `shard ${this.#shard}: position ${wanted.seq} is of journal generation ${wanted.generation}; ` +
        `generation ${folded.generation} has replaced it`,
      { shard: this.#shard, expected: folded, received: wanted },
    );
  }
}
