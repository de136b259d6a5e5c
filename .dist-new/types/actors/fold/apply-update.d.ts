import { type Dtype } from "../../protocol/dtypes.ts";
import type { PartIndex } from "../../protocol/messages/parts.ts";
import type { InitRecord, PushOperation } from "../../protocol/messages/records.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { BlockActor, BlockName, SlotPlan } from "./block-actor.ts";
import type { BlockTable } from "./block-table.ts";
import { type Payload } from "./elements.ts";
import { type ColumnTarget } from "./row-ranges.ts";
import type { Statistics } from "./statistics.ts";
import type { StepTable } from "./step-table.ts";
import { type FloatDtype } from "./update-rule.ts";
/** An `init` that passed every check. */
export interface InitChange {
    readonly kind: "init";
    readonly name: BlockName;
    readonly record: InitRecord;
    readonly plan: SlotPlan;
    readonly data: Uint8Array;
    /** Absent unless somebody observes the fold. */
    readonly statistics?: Statistics | undefined;
}
/** A `set` that passed every check. */
export interface SetChange {
    readonly kind: "set";
    readonly block: BlockActor;
    readonly data: Uint8Array;
    /** Absent unless somebody observes the fold. */
    readonly statistics?: Statistics | undefined;
}
/** A push whose payload has as many elements as its block or part. */
interface FittingPush {
    readonly block: BlockActor;
    readonly payload: Payload;
    /** The elements of the block that the payload changes; undefined for all. */
    readonly part: PartIndex | undefined;
    /** L2 norm of the trainer's whole tensor; set for a gradient that is clipped by its norm. */
    readonly norm: number | undefined;
    /** Absent unless somebody observes the fold. */
    readonly statistics?: Statistics | undefined;
}
/** A push with `alpha` and `beta` that passed every check. */
export interface MixChange extends FittingPush {
    readonly kind: "mix";
    readonly operation: PushOperation & {
        readonly op: "mix";
    };
}
/** A gradient that passed every check. */
export interface GradientChange extends FittingPush {
    readonly kind: "gradient";
    readonly operation: PushOperation & {
        readonly op: "grad";
    };
    /** Divisor of the learning rate because of staleness; 1 or more. */
    readonly behind: number;
}
/** A change of one block that passed every check. */
export type Change = InitChange | SetChange | MixChange | GradientChange;
/** Whether elements of this type are floating point numbers. */
export declare function isFloat(dtype: Dtype): dtype is FloatDtype;
/**
 * Whether no element of a payload is a NaN or an infinity; true for integers. The payload must not have changed since
 * the checksum of its record was compared: that pass has already found most answers.
 */
export declare function allFinite(memory: ShardMemory, payload: Payload): boolean;
/** `values = alpha · values + beta · payload` in the target's one column. */
export declare function mix(memory: ShardMemory, target: ColumnTarget, payload: Payload, alpha: number, beta: number): void;
/**
 * Applies one gradient to its block at once: floats are scaled, clipped and given to the optimizer's
 * rule, integers are added with wrap-around. Rows outside the part keep values, slots and counts.
 */
export declare function applyGradient(memory: ShardMemory, change: GradientChange): void;
/** State that applying an open step needs. */
interface StepContext {
    readonly memory: ShardMemory;
    readonly blocks: BlockTable;
}
/**
 * Scales and clips a trainer's gradient and adds it to the open step of its block. Values and version stay. The step
 * must have been checked before.
 */
export declare function accumulateGradient({ memory, blocks }: StepContext, trainer: string, change: GradientChange): void;
/**
 * Applies the open steps of these blocks: divides the sum of a block's gradients by `divisor` and updates the block
 * once by its optimizer's rule. Of a sparse parameter it updates only the rows that a gradient of the step names.
 */
export declare function closeStep({ memory, blocks }: StepContext, closing: Iterable<BlockActor>, divisor: number): void;
/**
 * Forgets the gradients of open steps; values and versions stay.
 * @returns how many blocks had an open step.
 */
export declare function discardOpenSteps(blocks: Iterable<BlockActor>): number;
/** State that applying a record's change needs. */
interface ChangeContext extends StepContext {
    readonly steps: Pick<StepTable, "noteGradient">;
    /** Sender of the record. */
    readonly trainer: string;
}
/**
 * Applies a change that `checkRecord` passed, or adds its gradient to the open step.
 * @returns the version of the block afterwards.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export declare function applyChange(context: ChangeContext, change: Change): number;
export {};
//# sourceMappingURL=apply-update.d.ts.map