import type { Position, PserverError } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { JournalHead } from "./journal-head.ts";
import type { PositionQueue } from "./position-queue.ts";
import type { StepQueue } from "./step-queue.ts";

/**
 * Decides when the owner of a shard answers. Does no I/O.
 *
 * While it catches up with the head of the journal at take-over it answers nothing: the senders of
 * these records were answered by former owners, or ask.
 */
export class OwnerCore {
  readonly shard: Pick<Shard, "seq" | "steps">;
  readonly head: JournalHead;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  #isServing = false;

  constructor(parts: Pick<OwnerCore, "shard" | "head" | "positions" | "steps">) {
    this.shard = parts.shard;
    this.head = parts.head;
    this.positions = parts.positions;
    this.steps = parts.steps;
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#isServing;
  }

  /** Starts to serve if the fold has reached the head of the journal; whether it did just now. */
  catchUp(): boolean {
    if (this.#isServing || this.shard.seq < this.head.seq) return false;
    this.#isServing = true;
    return true;
  }

  /** Answers pending requests after records have been folded or skipped. */
  advanced(position: Position): void {
    this.positions.advance(position);
    this.steps.advance();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.positions.refuseAll(error);
    this.steps.refuseAll(error);
  }
}
