import type { ParameterConfig } from "../../protocol/config/index.ts";
import type { Synchronization } from "../../protocol/config/synchronization.ts";
import { type Dtype } from "../../protocol/dtypes.ts";
import { type BlockExtent, type BlockRows } from "../../protocol/messages/parts.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { type FloatDtype, type UpdateRule } from "./update-rule.ts";
/** The block that a record names. */
export interface BlockName {
    readonly parameter: string;
    readonly index: number;
}
/** Gradients of a step that has not closed, added up in a block. */
export interface OpenStep {
    /** Senders of the gradients, in the order of arrival. */
    readonly trainers: readonly string[];
    /** Learning rate that all these gradients name; absent if they use the configuration's. */
    readonly learningRate?: number;
}
/** What a block is, without its bytes; its entry in the state of a snapshot. */
export interface BlockHeader extends BlockName {
    /** Number of the initialization that created this block. */
    readonly epoch: number;
    readonly dtype: Dtype;
    /** Shape of the whole parameter. */
    readonly shape: readonly number[];
    /** First element of the block in the parameter, in C order. */
    readonly start: number;
    /** Elements of the block. */
    readonly count: number;
    readonly config: ParameterConfig;
    /** How often the values have changed under this epoch; the `init` counts as 1. */
    readonly version: number;
    /**
     * How many updates by gradients there were under this epoch, in `sync` one for each closed step. Rows of a sparse
     * parameter count their own.
     */
    readonly updates: number;
    /** Absent while no gradient is added up. */
    readonly open?: OpenStep;
}
/** Read access to a block of a shard. Its header and bytes change with the records applied. */
export interface Block extends Omit<BlockHeader, "open"> {
    /** How many gradients are added up in the open step. Epoch, version and this number identify the bytes. */
    readonly accumulated: number;
    /** Bytes of the values. */
    readonly bytes: number;
    /** Bytes of the values and all slots. */
    readonly heldBytes: number;
    /** Number of slots beside the values, see `SlotPlan`. */
    readonly slots: number;
    /**
     * The values: a live view, invalid after the shard's next `apply`.
     * @throws INTERNAL once the block has been removed from its shard.
     */
    values(): Uint8Array<ArrayBuffer>;
    /**
     * A live view of a slot, like {@link Block.values}. Slot 0 is the values; from slot 1 on, slots hold the
     * optimizer's state.
     * @throws BAD_VALUE if there is no such slot.
     */
    slotBytes(slot: number): Uint8Array<ArrayBuffer>;
}
/** Returns the name of a block in messages. */
export declare function blockLabel(parameter: string, index: number): string;
/**
 * Whether block `index` can have this place in some layout: every block but the last has the same number of elements,
 * in order, without a gap.
 */
export declare function isPlaced(index: number, place: BlockExtent): boolean;
/** Implements a block in ranges of its shard's memory. Only {@link applyChange} and the end of a step change it. */
export declare class BlockActor implements Block {
    #private;
    /** Name of the block in messages; kept, because every check of a record may need it. */
    readonly label: string;
    readonly parameter: string;
    readonly index: number;
    readonly epoch: number;
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    readonly start: number;
    readonly count: number;
    readonly config: ParameterConfig;
    readonly bytes: number;
    readonly heldBytes: number;
    readonly slots: number;
    readonly plan: SlotPlan;
    /** Division of its elements into rows. */
    readonly rows: BlockRows;
    version: number;
    updates: number;
    /** Senders of the gradients in the open step, in the order of arrival. */
    readonly contributors: Set<string>;
    /** Learning rate that these gradients name; undefined if they use the configuration's. */
    openRate: number | undefined;
    /**
     * Allocates the values, with undefined contents, and the slots, filled with zeros.
     * @throws TOO_LARGE if the memory is full.
     */
    constructor(memory: ShardMemory, header: BlockHeader, plan: SlotPlan);
    /** Address of the values in the shard's memory. @throws INTERNAL once the block is freed. */
    get pointer(): number;
    /**
     * Address of a slot in the shard's memory; slot 0 is the values.
     * @throws INTERNAL once the block is freed, BAD_VALUE if there is no such slot.
     */
    slotPointer(slot: number): number;
    get accumulated(): number;
    values(): Uint8Array<ArrayBuffer>;
    slotBytes(slot: number): Uint8Array<ArrayBuffer>;
    /** Returns the optimizer's rule for the block's elements, which must be floats. The first call creates it. */
    rule(dtype: FloatDtype): UpdateRule;
    /** Copies the header, with its entries in the order that snapshots have. */
    header(): BlockHeader;
    /** Frees the bytes; the block cannot be read afterwards. */
    free(): void;
}
/** Properties of a block that determine its slots. */
export interface SlotOwner extends BlockExtent {
    readonly dtype: Dtype;
    readonly config: ParameterConfig;
}
/** The slots of a block. Slot 0 is the values; the others are numbered from 1 in the order of this type's entries. */
export interface SlotPlan {
    /** Bytes of slots 1, 2, …; all zero in a new block. */
    readonly bytes: readonly number[];
    /** Number of slots of the optimizer's rule, each as long as the values. */
    readonly rule: number;
    /** Slot of the rows' update counts, a uint32 for each row; only of a sparse parameter. */
    readonly counts?: number;
    /** Slot of the sum of the open step's gradients, as long as the values; only in a `sync` job. */
    readonly accumulator?: number;
    /** Slot with one byte for each row: 1 if a gradient of the open step names the row, else 0. */
    readonly touched?: number;
}
/** Plans the slots of a block. A static parameter has none, because it is never updated. */
export declare function slotPlan(owner: SlotOwner, synchronization: Synchronization): SlotPlan;
/** Counts the bytes of the values and all slots of a block. */
export declare function heldBytes(owner: SlotOwner, plan: SlotPlan): number;
//# sourceMappingURL=block-actor.d.ts.map