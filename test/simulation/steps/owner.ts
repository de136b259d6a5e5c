import type { Block } from "../../../src/actors/fold/block-actor.ts";
import type { FoldState } from "../../../src/actors/fold/fold-state.ts";
import { type RecordAnswer, Shard } from "../../../src/actors/fold/shard.ts";
import { FoldQueue } from "../../../src/actors/owner/fold-loop.ts";
import { evaluateStep } from "../../../src/actors/owner/pending-reads.ts";
import { packValue, unpackValue } from "../../../src/protocol/codec.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import type { MemoryPool } from "../fold-maker.ts";
import { promise } from "../violation.ts";
import { type BatchFault, damagedBatch, isBatch } from "./batch-faults.ts";
import type { Entry } from "./records.ts";

/** A snapshot: the state packed, and all slots of the one block of each parameter that there is. */
export interface Snapshot {
  readonly seq: number;
  readonly state: Uint8Array;
  readonly slots: ReadonlyMap<string, readonly Uint8Array[]>;
}

/** Deviations of an owner, for proving that the oracles find them. */
export interface OwnerFaults {
  /** Says that a step has closed when its members have only begun it. */
  readonly closesEarly?: boolean;
  /** Lets a member wait for a step that it has ended in an earlier membership only. */
  readonly trustsMembers?: boolean;
  /** Leaves what gradients of the open step add up to out of its snapshots. */
  readonly forgetsSums?: boolean;
  /** Leaves the clocks of members out of its snapshots. */
  readonly forgetsClocks?: boolean;
  /** What is wrong with how it folds batches. */
  readonly batches?: BatchFault;
}

/** How far a shard is, as an owner answers. */
export interface StepAnswer {
  readonly closed: number;
  /** Whether the step closes with the trainer, or has closed. */
  readonly hasPlace: boolean;
}

/** The fold as a snapshot left it. */
export function restoreFold(pool: MemoryPool, shard: number, { state, slots }: Snapshot): Shard {
  const options = { ...pool.options(), shard };
  return Shard.restore(options, unpackValue(state.slice()), ({ parameter }, slot) => {
    return slots.get(parameter)?.[slot] ?? new Uint8Array(0);
  });
}

/**
 * A host that owns a shard; its records are folded by the actors' `FoldQueue`. Models are: its snapshots,
 * which are whole copies, because the other simulation runs the code that makes them; and its requests,
 * which never wait, because trainers ask again and again.
 */
export class Owner {
  readonly fold: Shard;
  readonly #journal: readonly Entry[];
  readonly #faults: OwnerFaults;
  readonly #queue: FoldQueue;
  #settled: RecordAnswer | undefined;
  /** A batch whose turn was given to the record behind it. */
  #late: Entry | undefined;

  constructor(options: {
    readonly shard: number;
    readonly journal: readonly Entry[];
    readonly pool: MemoryPool;
    readonly from: Snapshot | undefined;
    readonly faults: OwnerFaults;
  }) {
    const { shard, pool, from } = options;
    this.#journal = options.journal;
    this.#faults = options.faults;
    this.fold =
      from === undefined
        ? Shard.create({ ...pool.options(), shard })
        : restoreFold(pool, shard, from);
    this.#queue = new FoldQueue(this.fold, {
      mayFold: () => true,
      onFolded: () => undefined,
      onSettled: (settled) => {
        this.#settled = settled;
      },
      onReread: () => undefined,
    });
  }

  /** Folds some records; the answer to each goes to `settle`. */
  foldSome(count: number, settle: (entry: Entry, outcome: Outcome | undefined) => void): void {
    for (let left = count; left > 0; left--) {
      const entry = this.#journal[this.fold.seq];
      if (entry === undefined) return;
      this.#queue.add(this.#faulty(entry));
      const stop = this.#queue.fold();
      promise(stop.kind === "idle", () => `the fold stops at record ${entry.seq}: ${stop.kind}`);
      settle(entry, this.#takeSettled()?.outcome);
    }
  }

  /** The entry as it is folded: itself, unless batches are folded wrongly. */
  #faulty(entry: Entry): Entry {
    const { batches } = this.#faults;
    if (batches !== "late") return batches === undefined ? entry : damagedBatch(entry, batches);
    const late = this.#late;
    this.#late = undefined;
    if (late !== undefined) return { ...late, seq: entry.seq };
    const following = this.#journal[entry.seq];
    if (following === undefined || !isBatch(entry)) return entry;
    this.#late = entry;
    return { ...following, seq: entry.seq };
  }

  #takeSettled(): RecordAnswer | undefined {
    const settled = this.#settled;
    this.#settled = undefined;
    return settled;
  }

  snapshot(): Snapshot {
    const slots = new Map(
      [...this.fold.blocks()].map((block) => [block.parameter, slotsOf(block)]),
    );
    if (this.#faults.forgetsSums === true) {
      for (const [, ...sums] of slots.values()) for (const each of sums) each.fill(0);
    }
    return { seq: this.fold.seq, state: packValue(this.#state()), slots };
  }

  #state(): FoldState {
    const state = this.fold.saveState();
    if (this.#faults.forgetsClocks !== true || state.steps === undefined) return state;
    const { closed, members } = state.steps;
    const forgotten = members.map(([id]) => [id, closed] as const);
    return { ...state, steps: { ...state.steps, members: forgotten } };
  }

  /** What became of a record, once it is folded so far. */
  outcome(trainer: string, session: number, n: number, seq: number): Outcome | undefined {
    if (this.fold.seq < seq) return undefined;
    return this.fold.outcomes(trainer, { session, numbers: [n] })[0];
  }

  /** How far the steps are, once they are so far, or that they cannot get there for this trainer. */
  step(trainer: string, revision: number, step: number, seq: number): StepAnswer | undefined {
    const { steps } = this.fold;
    if (this.fold.seq < seq) return undefined;
    const closed = steps.closed + (this.#faults.closesEarly === true ? 1 : 0);
    const isEarly = closed >= step && steps.revision >= revision;
    const { kind } = evaluateStep({ revision, step, trainer, isRead: false }, steps);
    if (kind === "wait" && !isEarly) return undefined;
    if (
      kind === "refuse" &&
      this.#faults.trustsMembers === true &&
      steps.clockOf(trainer) !== undefined
    ) {
      return undefined;
    }
    return { closed, hasPlace: kind !== "refuse" || isEarly };
  }
}

function slotsOf(block: Block): Uint8Array[] {
  return Array.from({ length: 1 + block.slots }, (_, slot) => block.slotBytes(slot).slice());
}
