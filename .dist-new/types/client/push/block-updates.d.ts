import { type Encoding, type TensorData } from "../../protocol/dtypes.ts";
import type { Declaration, ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { type PushOperation } from "../../protocol/messages/records.ts";
import { type Numbers } from "../../protocol/row-lists/row-lists.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type Tensor, type TensorLike } from "../../protocol/tensor.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import type { UpdateSource } from "../io/update-sender.ts";
import { type IndexList, type PartSlice } from "../part-plan.ts";
/**
 * Returns the given tensor if it fits the parameter; a bare typed array of as many elements takes the
 * parameter's shape. The data is not copied.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if it does not fit.
 */
export declare function fitTensor(info: ParameterInfo, given: TensorLike): Tensor;
/**
 * Returns the given elements if they fit some elements of a parameter; of a bare typed array only the
 * length counts.
 * @param shape expected of a tensor; a dimension may be 0.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if they do not fit.
 */
export declare function fitData({ name, dtype }: Pick<Declaration, "name" | "dtype">, given: TensorLike, shape: readonly number[], elements: number): TensorData;
/**
 * Checks that elements are finite, also when encoded, unless the parameter allows others.
 * @throws NON_FINITE naming the first that is not; what {@link checkEncoding} throws.
 */
export declare function checkFiniteElements(parameter: Pick<Declaration, "name" | "dtype" | "config">, data: TensorData, encoding?: Encoding): void;
/**
 * Checks a gradient as {@link checkFiniteElements} does and returns its L2 norm, as encoded, if the
 * parameter clips by it: every block update carries the norm of the whole gradient.
 * @throws as {@link checkFiniteElements}.
 */
export declare function checkedNorm(parameter: Pick<Declaration, "name" | "dtype" | "config">, data: TensorData, encoding?: Encoding): number | undefined;
/**
 * Checks that the elements of a parameter can be encoded; undefined stands for no encoding.
 * @throws BAD_VALUE for an unknown one, UNSUPPORTED for one of another type than float32.
 */
export declare function checkEncoding({ name, dtype }: Pick<Declaration, "name" | "dtype">, encoding: Encoding | undefined): void;
/** Runs a check and adds the parameter to its error. */
export declare function named<T>(parameter: string, check: () => T): T;
/** The trainer that sends the records, and its subjects. */
interface Sender {
    readonly subjects: JobSubjects;
    readonly trainer: string;
}
/** Settings of the push of one parameter. */
export interface Push {
    /**
     * L2 norm, as encoded, of all elements that the call sends of the parameter; absent if it is not needed.
     */
    readonly norm?: number;
    readonly encoding?: Encoding;
    /** Returns the operation on the block with this index; called when the message is made. */
    readonly operation: (block: number, namesVersion: boolean) => PushOperation;
    /** Returns whether the operation of a block can name the version that a gradient was made from. */
    readonly namesVersion?: (block: number) => boolean;
}
/** Makes updates that initialize every block of a parameter. */
export declare function initUpdates(sender: Sender, info: ParameterInfo, tensor: Tensor): UpdateSource[];
/** Makes updates that overwrite every block of a parameter. */
export declare function setUpdates(sender: Sender, info: ParameterInfo, tensor: Tensor): UpdateSource[];
/** Makes updates that change every block of a parameter. */
export declare function pushUpdates(sender: Sender, info: ParameterInfo, data: TensorData, push: Push): UpdateSource[];
/** Makes updates that change parts of blocks with the elements that `data` has for them. */
export declare function partUpdates(sender: Sender, info: ParameterInfo, slices: readonly PartSlice[], data: TensorData, push: Push): UpdateSource[];
/** Rows of a gradient, each once, ascending. */
interface RowSums {
    readonly rows: Numbers;
    /** A row of elements for each of `rows`. */
    readonly values: TensorData;
}
/**
 * Sorts rows, and adds up those that are named repeatedly, in the order given and in the element type
 * (integers wrap around). The data is not copied if there is nothing to do.
 * @param rows normalized; `values` has `rowElements` elements for each.
 */
export declare function sumRows(rows: Numbers, values: TensorData, rowElements: number): RowSums;
/**
 * A gradient of some rows (of axis 0) of a parameter that is configured `sparse`. Negative numbers
 * count from the end. Of a row that is named repeatedly the values are added up, in order.
 */
export interface RowGradient {
    readonly rows: IndexList;
    /** A row of elements for each number in `rows`: a tensor of shape [rows, …], or a bare array. */
    readonly values: TensorLike;
}
/** A gradient of a whole parameter, or of some of its rows. */
export type Gradient = TensorLike | RowGradient;
/** Gradients by parameter name. */
export type GradientRecord = Readonly<Record<string, Gradient>> | ReadonlyMap<string, Gradient>;
/** Dependencies and settings of gradient updates. */
export interface GradientMode {
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly learningRate: number | undefined;
    readonly encoding: Encoding | undefined;
    readonly seen: SeenVersions;
    /** The step they belong to, read when a message is made. */
    readonly step: () => number | undefined;
}
/**
 * Makes the updates of one gradient of a parameter; none if no row is named.
 * @throws UNSUPPORTED, NO_LEARNING_RATE, BAD_DTYPE, BAD_SHAPE, BAD_INDEX or NON_FINITE for what does
 * not fit.
 */
export declare function gradientUpdates(info: ParameterInfo, given: Gradient, mode: GradientMode): UpdateSource[];
/** Tensors by parameter name. */
export type TensorRecord = Readonly<Record<string, TensorLike>> | ReadonlyMap<string, TensorLike>;
/** Names of parameters, each with what the call was given for it. */
export type Entries<Given> = readonly (readonly [name: string, given: Given])[];
/** Lists what a call was given for each name. @throws EMPTY if it was given nothing. */
export declare function entriesOf<Given>(given: Readonly<Record<string, Given>> | ReadonlyMap<string, Given>, what: string): Entries<Given>;
export {};
//# sourceMappingURL=block-updates.d.ts.map