import { type TensorData } from "../protocol/dtypes.ts";
import { type BlockPlace, type Layout } from "../protocol/layout.ts";
import { type PartIndex } from "../protocol/messages/parts.ts";
import { type Numbers } from "../protocol/row-lists/row-lists.ts";
/** Numbers of elements along one dimension; negative ones count from its end. */
export type IndexList = readonly number[] | Int32Array | Uint32Array;
/** Resolves negative numbers of one dimension's list. @throws BAD_INDEX as {@link normalizeIndices} does. */
export declare function normalizeList(parameter: string, size: number, list: IndexList, axis: number): Numbers;
/** Pairs of places, one in the caller's tensor and one in a message. */
interface Matching {
    /** Ascending. */
    readonly tensor: Uint32Array;
    readonly message: Uint32Array;
}
/**
 * The elements of a part that lie in one block. An element of the caller's tensor is a row and a place in the row:
 * element `rows.tensor[i] · tensorRowElements + inner.tensor[j]` of the tensor is element
 * `rows.message[i] · messageRowElements + inner.message[j]` of the message, for every i and j.
 */
export interface BlockPart {
    readonly place: BlockPlace;
    /** The elements of the block in the message; undefined for all of them. */
    readonly index: PartIndex | undefined;
    readonly rows: Matching;
    /** Places in a row; undefined if a row of the message has the same elements as a row of the tensor. */
    readonly inner: Matching | undefined;
    readonly tensorRowElements: number;
    readonly messageRows: number;
    readonly messageRowElements: number;
    /** Place of the message's first element in the tensor, if its elements are consecutive there. */
    readonly tensorStart: number | undefined;
}
/** A part of a parameter, cut along the parameter's blocks. */
export interface PartPlan {
    /** Lengths of the lists: shape of the caller's tensor. A dimension may be 0. */
    readonly shape: readonly number[];
    readonly elements: number;
    /** Blocks that have elements of the part, in order. */
    readonly blocks: readonly BlockPart[];
}
/** The parameter for which a plan is made. */
export interface PlannedParameter {
    readonly name: string;
    readonly shape: readonly number[];
    readonly layout: Layout;
}
/**
 * Cuts the cartesian product of index lists, one for each dimension, along the parameter's blocks.
 * Memory is in proportion to the elements of the part.
 * @throws BAD_INDEX, TOO_LARGE as `normalizeIndices` does.
 */
export declare function planPart(cut: PlannedParameter, indices: readonly IndexList[]): PartPlan;
/**
 * Cuts rows of a parameter that is cut between rows.
 * @param rows in the order of the caller's tensor; from 0 to the parameter's last.
 */
export declare function planRows(cut: PlannedParameter, rows: Numbers, offsets?: Numbers): BlockPart[];
/** A rectangle of a block's elements that fits into one message. */
export interface PartSlice {
    readonly part: BlockPart;
    /** The elements of the block in the message; undefined for all. */
    readonly index: PartIndex | undefined;
    readonly elements: number;
    readonly firstRow: number;
    readonly firstInner: number;
}
/** Copies a message's elements to their places in the caller's tensor, each as often as it is named. */
export declare function scatterPart(part: BlockPart, message: TensorData, tensor: TensorData): void;
/**
 * Takes the elements of a message from the caller's tensor; of an element that is named repeatedly, the last
 * one in C order. Returns a view of the tensor if they lie in it in the order of the message.
 */
export declare function gatherPart(slice: PartSlice, tensor: TensorData): TensorData;
/**
 * Cuts a part of a block into messages of at most `bytesMax` bytes of index and elements. It takes several
 * messages only if the index and the elements do not fit into one.
 */
export declare function slicePart(part: BlockPart, elementBytes: number, bytesMax: number): PartSlice[];
export {};
//# sourceMappingURL=part-plan.d.ts.map