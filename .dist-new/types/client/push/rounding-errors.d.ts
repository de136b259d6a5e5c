import type { GroupedEncoding } from "../../protocol/dtypes.ts";
import { type GroupedBytes } from "../../protocol/encoding/grouped.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { PartSlice } from "../part-plan.ts";
/** Where the elements of an update lie in their parameter: those of a whole block, or of some of its rows. */
export interface UpdatePlace {
    readonly info: ParameterInfo;
    /** First element of the block in the parameter, and its elements. */
    readonly start: number;
    readonly count: number;
    /** The rows, numbered within the block; undefined for all. */
    readonly rows: Uint32Array | undefined;
    /** Elements of the update. */
    readonly elements: number;
}
/** Returns where the elements of a slice, whole rows of a block, lie. */
export declare function slicePlace(info: ParameterInfo, { part, index, elements }: PartSlice): UpdatePlace;
/**
 * What rounding has left out of a trainer's gradients, for each element of each parameter: it is added to the next
 * gradient of the element, so that nothing is lost for good. Takes as much memory as the parameters whose gradients
 * are sent in an encoding with scales.
 */
export declare class RoundingErrors {
    #private;
    /** Returns the errors of all elements of a parameter; undefined if there are none of its epoch yet. */
    find({ name, epoch }: ParameterInfo): Float32Array | undefined;
    /** Forgets all errors, after a shard has undone some of the updates that left them. */
    clear(): void;
    /**
     * Encodes the elements of updates, which follow each other, after adding to each its error, and keeps as its error
     * what is left out now. Updates of a parameter that has been initialized again meanwhile are encoded without.
     */
    encode(encoding: GroupedEncoding, places: readonly UpdatePlace[], elements: Float32Array, to: GroupedBytes): void;
}
/** Copies the errors of updates, one behind the other, into an array; zeros for those that have none. */
export declare function gatherErrors(places: readonly UpdatePlace[], held: readonly (Float32Array | undefined)[], into: Float32Array): void;
//# sourceMappingURL=rounding-errors.d.ts.map