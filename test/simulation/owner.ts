import type { Block } from "../../src/actors/fold/block.ts";
import { recordCrc } from "../../src/actors/fold/read-record.ts";
import type { Settled } from "../../src/actors/fold/shard.ts";
import { packValue, unpackValue } from "../../src/protocol/codec.ts";
import { ensureError } from "../../src/protocol/errors.ts";
import type { Outcome } from "../../src/protocol/outcomes.ts";
import type { Fold, FoldMaker, MemoryPool } from "./fold-maker.ts";
import type { Journal } from "./journal.ts";
import { promise } from "./violation.ts";

/** A committed snapshot: the state packed, and the values it names. */
export interface Snapshot {
  readonly seq: number;
  readonly state: Uint8Array;
  readonly values: ReadonlyMap<string, Uint8Array>;
}

/** Deviations of an owner, for proving that the oracles find them. */
export interface OwnerFaults {
  /** Copies a snapshot's values when it commits, not before they change. */
  readonly copiesLate?: boolean;
  /** Answers outcome requests before it has folded so far. */
  readonly answersEarly?: boolean;
  /** Takes over one record further than its snapshot. */
  readonly skipsRecord?: boolean;
  /** Goes on behind a hole without a snapshot that says so. */
  readonly passesSilently?: boolean;
  /** Takes the last sequence for the last record when it takes over. */
  readonly countsSequences?: boolean;
}

/** The fold as a snapshot left it. */
export function restoreFold(maker: FoldMaker, pool: MemoryPool, snapshot: Snapshot): Fold {
  return maker.restore(pool.options(), unpackValue(snapshot.state.slice()), (block) =>
    readPiece(snapshot, block),
  );
}

/** A host that owns the shard, or still believes so. */
export class Owner {
  readonly term: number;
  readonly fold: Fold;
  readonly #journal: Journal;
  readonly #faults: OwnerFaults;
  /**
   * The last record when it took over. It answers nothing up to here: others have, or will be asked.
   * Nor does it pass over a hole up to here: others may have folded what was in it.
   */
  readonly #headSeq: number;
  #alive = true;
  #pieces: Map<string, Uint8Array> | undefined;
  #saved: { seq: number; state: Uint8Array } | undefined;

  /** Takes over from a snapshot, or from the beginning of the journal. */
  constructor(options: {
    readonly term: number;
    readonly journal: Journal;
    readonly maker: FoldMaker;
    readonly pool: MemoryPool;
    readonly from: Snapshot | undefined;
    readonly faults: OwnerFaults;
    /** Whether it looks for the record that the snapshot names; planted bugs change records. */
    readonly verifies: boolean;
  }) {
    const { journal, from } = options;
    this.term = options.term;
    this.#journal = journal;
    this.#faults = options.faults;
    this.#headSeq = options.faults.countsSequences === true ? journal.last : journal.lastRecord;
    const settings = options.pool.options({ beforeChange: (block) => this.#copy(block) });
    if (from === undefined) {
      this.fold = options.maker.create(settings);
      return;
    }
    const state = unpackValue(from.state.slice()) as { seq: number };
    if (options.faults.skipsRecord === true && from.seq < journal.last) state.seq += 1;
    this.fold = options.maker.restore(settings, state, (block) => readPiece(from, block));
    const named = journal.readFrom(from.seq);
    promise(
      !options.verifies ||
        this.fold.lastCrc === 0 ||
        (named !== undefined && recordCrc(named.payload) === this.fold.lastCrc),
      () => `record ${from.seq} is not the one that the snapshot names`,
    );
  }

  get alive(): boolean {
    return this.#alive;
  }

  get behind(): number {
    return this.#journal.lastRecord - this.fold.seq;
  }

  kill(): void {
    this.#alive = false;
  }

  /** The records missing before the next one: none wrote them, or a newer owner has purged them. */
  get gap(): { readonly from: number; readonly to: number } | undefined {
    const from = this.fold.seq + 1;
    const next = this.#journal.readFrom(from);
    return next === undefined || next.seq === from ? undefined : { from, to: next.seq - 1 };
  }

  /** Passes over the missing records; the snapshot to commit before it goes on. */
  passOver({ from, to }: { from: number; to: number }): Snapshot | undefined {
    promise(
      from > this.#headSeq && this.#journal.isHole(from, to),
      () => `the owner of term ${this.term} is stopped by a hole from ${from} to ${to}`,
    );
    this.fold.skipTo(to);
    if (this.#faults.passesSilently === true) return undefined;
    this.beginSnapshot();
    return this.finishSnapshot();
  }

  /** Folds the next record, if there is one; the answer that it sends, if it sends one. */
  foldNext(note: (seq: number, settled: Settled | undefined) => void): Settled | undefined {
    const entry = this.#journal.readFrom(this.fold.seq + 1);
    if (!this.#alive || entry === undefined) return undefined;
    let settled: Settled | undefined;
    try {
      settled = this.fold.apply(entry);
    } catch (error) {
      // The records it needs next were purged by a newer owner: it can only stop.
      const found = ensureError(error);
      promise(
        found.code === "JOURNAL_DAMAGED" && entry.seq > this.fold.seq + 1,
        () => found.message,
      );
      this.kill();
      return undefined;
    }
    note(entry.seq, settled);
    return entry.seq > this.#headSeq ? settled : undefined;
  }

  /** The answers to an outcome request; none before it has folded so far. */
  ask(
    trainer: string,
    request: { session: number; numbers: readonly number[] },
    seq: number,
  ): readonly Outcome[] {
    if (!this.#alive) return [];
    if (this.fold.seq < seq && this.#faults.answersEarly !== true) return [];
    return this.fold.outcomes(trainer, request);
  }

  /** Begins a snapshot of this moment. Its values are copied later, or just before they change. */
  beginSnapshot(): void {
    this.#saved = { seq: this.fold.seq, state: packValue(this.fold.saveState()) };
    this.#pieces = new Map();
    this.#missing = new Set([...this.fold.blocks()].map(pieceName));
  }

  /** The snapshot begun before, complete now. */
  finishSnapshot(): Snapshot | undefined {
    const saved = this.#saved;
    const values = this.#pieces;
    if (saved === undefined || values === undefined) return undefined;
    for (const block of this.fold.blocks()) this.#copy(block, true);
    this.#saved = undefined;
    this.#pieces = undefined;
    return { ...saved, values };
  }

  #missing: Set<string> = new Set();

  #copy(block: Block, last = false): void {
    if (this.#pieces === undefined || (this.#faults.copiesLate === true && !last)) return;
    const name = pieceName(block);
    if (this.#missing.delete(name)) this.#pieces.set(name, block.values().slice());
  }
}

function readPiece(snapshot: Snapshot, block: PieceOwner): Uint8Array {
  return snapshot.values.get(pieceName(block)) ?? new Uint8Array(0);
}

type PieceOwner = Pick<Block, "parameter" | "index" | "epoch">;

/** A block replaced under a higher epoch is another block. */
function pieceName({ parameter, index, epoch }: PieceOwner): string {
  return `${parameter} ${index} ${epoch}`;
}
