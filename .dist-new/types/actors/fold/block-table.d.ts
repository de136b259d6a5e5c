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
/** The blocks of a shard by parameter and index, and the sum of their bytes. */
export declare class BlockTable {
    #private;
    hooks: ShardHooks;
    constructor(memory: ShardMemory, hooks: ShardHooks);
    /** Number of blocks. */
    get count(): number;
    /** Bytes of all values and slots. */
    get bytes(): number;
    get(parameter: string, index: number): BlockActor | undefined;
    /** The blocks of one parameter, in no particular order. */
    of(parameter: string): Iterable<BlockActor>;
    all(): IterableIterator<BlockActor>;
    /** All blocks by name, in order of UTF-16 code units, then by index: the order in saved states. */
    sorted(): BlockActor[];
    /**
     * Creates a block, in place of an existing one; `fill` must write its values.
     * @throws TOO_LARGE if the memory is full; the shard is unusable afterwards.
     */
    put(header: BlockHeader, plan: SlotPlan, fill: (block: BlockActor) => void): BlockActor;
    /** Must be called before the values or slots of a block are changed in place. */
    beforeChange(block: BlockActor): void;
    /** Removes the blocks of a parameter whose epoch is at most `epoch`. */
    drop(parameter: string, epoch: number): void;
}
//# sourceMappingURL=block-table.d.ts.map