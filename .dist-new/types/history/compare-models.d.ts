import { type TensorHeader } from "../model-files/index.ts";
import { type Dtype, type TensorData } from "../protocol/dtypes.ts";
/**
 * Returns a view, not a copy, of elements in little-endian bytes, which must begin where an element of the type may
 * begin.
 */
export declare function viewElements(dtype: Dtype, bytes: Uint8Array): TensorData;
/** Difference of the values of one parameter between two models, A and B. */
export interface TensorDifference {
    /** Elements that differ; NaNs are equal, and 0 and −0 are not. */
    readonly differing: number;
    readonly elements: number;
    /** Largest |B − A|; NaN if an element is NaN in only one of them. */
    readonly largest: number;
    /** Sum of |B − A| over all elements, divided by their number. */
    readonly mean: number;
    readonly normA: number;
    readonly normB: number;
    /** First element that differs, in C order; undefined if none does. */
    readonly first: FirstDifference | undefined;
}
/** An element that differs, with both values as text. */
interface FirstDifference {
    readonly element: number;
    readonly a: string;
    readonly b: string;
}
/** Returns the indices of an element of a tensor, by its place in C order. */
export declare function indicesOf(element: number, shape: readonly number[]): number[];
/** A tensor of one of two models that are compared. */
export interface ComparedTensor {
    readonly header: TensorHeader;
    /** Yields its bytes, little-endian, in C order. */
    chunks(): AsyncIterable<Uint8Array>;
}
/** Result of the comparison of one parameter. */
export type ParameterDifference = {
    readonly kind: "only-a" | "only-b";
    readonly name: string;
    readonly header: TensorHeader;
} | {
    readonly kind: "other-form";
    readonly name: string;
    readonly a: TensorHeader;
    readonly b: TensorHeader;
} | {
    readonly kind: "compared";
    readonly name: string;
    readonly header: TensorHeader;
    readonly difference: TensorDifference;
};
/** Options of {@link compareModels}. */
export interface CompareOptions {
    /** Prints an element. */
    readonly show: (data: TensorData, index: number) => string;
    readonly signal: AbortSignal;
    /** Called now and then with the bytes of A that were compared, of those of all parameters that both have. */
    readonly onProgress?: (doneBytes: number) => void;
}
/**
 * Compares two models parameter by parameter, by name; holds a few MiB of them at a time.
 * @throws errors of reading them; the reason of the signal.
 */
export declare function compareModels(a: readonly ComparedTensor[], b: readonly ComparedTensor[], options: CompareOptions): AsyncGenerator<ParameterDifference, void, undefined>;
/** Whether two models agree in this parameter. */
export declare function isEqual(found: ParameterDifference): boolean;
/** Joins tensors as a save does: those of sparse shards become one. */
export declare function joinSparse(tensors: readonly ComparedTensor[]): ComparedTensor[];
export {};
//# sourceMappingURL=compare-models.d.ts.map