import { type Encoding, type TensorData } from "../../protocol/dtypes.ts";
import type { Declaration, ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { type Numbers } from "../../protocol/row-lists/row-lists.ts";
import { type Tensor, type TensorLike } from "../../protocol/tensor.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import { type IndexList } from "../part-plan.ts";
import { type RoundingErrors, type UpdatePlace } from "./rounding-errors.ts";
import type { UpdateCollector } from "./update-collector.ts";
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
 * Checks that elements, with the `errors` that are added to them, are finite, also when encoded, unless the parameter
 * allows others.
 * @throws NON_FINITE naming the first that is not; what {@link checkEncoding} throws.
 */
export declare function checkFiniteElements(parameter: Pick<Declaration, "name" | "dtype" | "config">, data: TensorData, encoding?: Encoding, errors?: Float32Array): void;
/**
 * Checks a gradient, whose updates are of these places, as {@link checkFiniteElements} does, with the `errors` that are
 * added to it; returns its L2 norm, as encoded, if the parameter clips by it: every block update carries the norm of
 * the whole gradient.
 * @throws as {@link checkFiniteElements}.
 */
export declare function checkedNorm(info: ParameterInfo, data: TensorData, places: () => readonly UpdatePlace[], { encoding, errors }: Pick<GradientMode, "encoding" | "errors">): number | undefined;
/**
 * Checks that the elements of a parameter can be encoded; undefined stands for no encoding.
 * @throws BAD_VALUE for an unknown one, UNSUPPORTED for one of another type than float32.
 */
export declare function checkEncoding({ name, dtype }: Pick<Declaration, "name" | "dtype">, encoding: Encoding | undefined): void;
/** Runs a check and adds the parameter to its error. */
export declare function named<T>(parameter: string, check: () => T): T;
/** Adds an update of every block of a parameter. `seen`: the versions that a gradient was made from. */
export declare function addTensor(collector: UpdateCollector, info: ParameterInfo, data: TensorData, norm?: number, seen?: SeenVersions): void;
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
/** Settings of the gradients of a call. */
export interface GradientMode {
    readonly learningRate: number | undefined;
    readonly encoding: Encoding | undefined;
    /** What rounding has left out before, and is added now; undefined if nothing is. */
    readonly errors?: RoundingErrors | undefined;
    readonly seen: SeenVersions;
}
/**
 * Adds the updates of one gradient of a parameter; none if no row is named.
 * @throws UNSUPPORTED, NO_LEARNING_RATE, BAD_DTYPE, BAD_SHAPE, BAD_INDEX or NON_FINITE for what does
 * not fit.
 */
export declare function addGradient(collector: UpdateCollector, info: ParameterInfo, given: Gradient, mode: GradientMode): void;
/** Tensors by parameter name. */
export type TensorRecord = Readonly<Record<string, TensorLike>> | ReadonlyMap<string, TensorLike>;
/** Names of parameters, and what a call was given for each of them. */
export interface Entries<Given> {
    readonly names: readonly string[];
    readonly values: readonly Given[];
}
/** Lists what a call was given for each name. @throws EMPTY if it was given nothing. */
export declare function entriesOf<Given>(given: Readonly<Record<string, Given>> | ReadonlyMap<string, Given>, what: string): Entries<Given>;
export {};
//# sourceMappingURL=block-updates.d.ts.map