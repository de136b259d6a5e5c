import type { ShardMemory } from "../kernel/shard-memory.ts";
import { type Block, BlockActor, type BlockHeader, type SlotPlan } from "./block-actor.ts";

/** Callbacks for changes of a shard's blocks. */
export interface ShardHooks {
  /** A block was created, or replaced under a higher epoch, and holds its values. */
  blockAdded?(block: Block): void;
  /** A block was removed; its bytes can no longer be read. */
  blockRemoved?(block: Block): void;
  /** The bytes of a block are about to change or to be freed; this is the last moment to copy them. */
  beforeChange?(block: Block): void;
}

/** The blocks of a shard by parameter and index, and by number, and the sum of their bytes. */
export class BlockTable {
  hooks: ShardHooks;
  /** Called with the number of each block that is removed, for what else the fold's state has of it. */
  onRemoved: (number: number) => void = () => undefined;
  readonly #memory: ShardMemory;
  readonly #parameters: Map<string, Map<number, BlockActor>> = new Map();
  readonly #numbers: Map<number, BlockActor> = new Map();
  /** Numbers of element types with configurations, by what they are. */
  readonly #kinds: Map<string, number> = new Map();
  #marks = 0;
  #count = 0;
  #bytes = 0;

  constructor(memory: ShardMemory, hooks: ShardHooks) {
    this.#memory = memory;
    this.hooks = hooks;
  }

  /** Number of blocks. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of all values and slots. */
  get bytes(): number {
    return this.#bytes;
  }

  get(parameter: string, index: number): BlockActor | undefined {
    return this.#parameters.get(parameter)?.get(index);
  }

  /** The block that has this number now. */
  ofNumber(number: number): BlockActor | undefined {
    return this.#numbers.get(number);
  }

  /** Returns a mark that no block has. */
  nextMark(): number {
    this.#marks += 1;
    return this.#marks;
  }

  /** The blocks of one parameter, in no particular order. */
  of(parameter: string): Iterable<BlockActor> {
    return this.#parameters.get(parameter)?.values() ?? [];
  }

  *all(): IterableIterator<BlockActor> {
    for (const blocks of this.#parameters.values()) yield* blocks.values();
  }

  /** All blocks by name, in order of UTF-16 code units, then by index: the order in saved states. */
  sorted(): BlockActor[] {
    return [...this.all()].sort((a, b) => {
      if (a.parameter === b.parameter) return a.index - b.index;
      return a.parameter < b.parameter ? -1 : 1;
    });
  }

  /**
   * Creates a block, in place of an existing one; `fill` must write its values.
   * @throws TOO_LARGE if the memory is full; the shard is unusable afterwards.
   */
  put(header: BlockHeader, plan: SlotPlan, fill: (block: BlockActor) => void): BlockActor {
    const { parameter, index } = header;
    const previous = this.get(parameter, index);
    // The former block is freed first, so that a shard near its limit can be initialized again.
    if (previous !== undefined) this.#remove(previous);
    const block = new BlockActor(this.#memory, header, plan, this.#kindOf(header));
    fill(block);
    const blocks = this.#parameters.get(parameter) ?? new Map<number, BlockActor>();
    this.#parameters.set(parameter, blocks.set(index, block));
    this.#numbers.set(block.number, block);
    this.#count += 1;
    this.#bytes += block.heldBytes;
    this.hooks.blockAdded?.(block);
    return block;
  }

  /** Must be called before the values or slots of a block are changed in place. */
  beforeChange(block: BlockActor): void {
    this.hooks.beforeChange?.(block);
  }

  /** Removes the blocks of a parameter whose epoch is at most `epoch`. */
  drop(parameter: string, epoch: number): void {
    for (const block of [...(this.#parameters.get(parameter)?.values() ?? [])]) {
      if (block.epoch <= epoch) this.#remove(block);
    }
  }

  #kindOf({ dtype, config }: BlockHeader): number {
    const key = JSON.stringify([dtype, config]);
    const kind = this.#kinds.get(key) ?? this.#kinds.size;
    this.#kinds.set(key, kind);
    return kind;
  }

  #remove(block: BlockActor): void {
    this.hooks.beforeChange?.(block);
    const blocks = this.#parameters.get(block.parameter);
    blocks?.delete(block.index);
    if (blocks?.size === 0) this.#parameters.delete(block.parameter);
    this.#numbers.delete(block.number);
    this.#count -= 1;
    this.#bytes -= block.heldBytes;
    block.free();
    this.onRemoved(block.number);
    this.hooks.blockRemoved?.(block);
  }
}
