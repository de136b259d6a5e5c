import type { BlockHeader } from "../../src/actors/fold/block-actor.ts";
import { RULES_1, type Rules } from "../../src/actors/fold/rules.ts";
import { Shard, type ShardOptions } from "../../src/actors/fold/shard.ts";
import { reserveMemory, ShardMemory } from "../../src/actors/kernel/shard-memory.ts";
import { BLOCKS, SHARD, SUBJECTS } from "./intents.ts";

/** The part of a shard that the simulation uses; planted bugs replace methods of it. */
export type Fold = Pick<
  Shard,
  | "seq"
  | "lastCrc"
  | "noted"
  | "endsWithRecord"
  | "continueChecksum"
  | "expect"
  | "apply"
  | "skipTo"
  | "outcomes"
  | "block"
  | "blocks"
  | "steps"
  | "saveState"
  | "digest"
>;

type ReadValues = (block: BlockHeader, slot: number) => Uint8Array;

/** Creates the folds of owners and oracles. */
export interface FoldMaker {
  create(options: ShardOptions): Fold;
  restore(options: ShardOptions, state: unknown, readValues: ReadValues): Fold;
}

/** The fold as it is. */
export const SOUND_FOLD: FoldMaker = {
  create: (options) => Shard.create(options),
  restore: (options, state, readValues) => Shard.restore(options, state, readValues),
};

/** Small limits, so that short schedules reach them. */
export const WINDOW = 4;
export const RULES: Rules = {
  ...RULES_1,
  windowRecords: WINDOW,
  trainersMax: 64,
  shardBytesMax: 1024 * 1024,
  blocksMax: 8,
  declaredMax: 4,
  clockLeadSteps: WINDOW,
  rejectedMax: 1_000,
  unreadableTrainersMax: 2,
  batchEntriesMax: BLOCKS,
  batchHeaderBytesMax: 4_096,
};

/**
 * Memories that are reused: a process can address a limited number of WebAssembly memories, and the
 * simulation creates thousands of shards.
 */
export class MemoryPool {
  readonly #free: PooledMemory[] = [];
  readonly #used: PooledMemory[] = [];

  /** Settings of a shard with a memory of the pool. */
  options(hooks: ShardOptions["hooks"] = {}): ShardOptions {
    const memory = this.#free.pop() ?? new PooledMemory(reserveMemory());
    this.#used.push(memory);
    return {
      subjects: SUBJECTS,
      shard: SHARD,
      knownRules: new Map([[RULES.version, RULES]]),
      memory,
      hooks,
    };
  }

  /** Takes all memories back; the shards that used them must not be used any more. */
  reclaim(): void {
    for (const memory of this.#used.splice(0)) {
      memory.freeAll();
      this.#free.push(memory);
    }
  }
}

class PooledMemory extends ShardMemory {
  readonly #allocated: Map<number, number> = new Map();

  override allocate(bytes: number): number {
    const pointer = super.allocate(bytes);
    this.#allocated.set(pointer, bytes);
    return pointer;
  }

  override free(pointer: number, bytes: number): void {
    super.free(pointer, bytes);
    this.#allocated.delete(pointer);
  }

  freeAll(): void {
    for (const [pointer, bytes] of [...this.#allocated]) this.free(pointer, bytes);
  }
}
