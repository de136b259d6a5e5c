import { type Dtype, type TensorData } from "./dtypes.ts";
/** A tensor in C order. `shape` [] is a scalar of one element. */
export interface Tensor {
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    readonly data: TensorData;
}
/** A tensor as calls accept it: with its shape, or a bare typed array of one dimension. */
export type TensorLike = Tensor | TensorData;
/**
 * Returns the number of elements of a shape.
 * @throws BAD_SHAPE unless it has at most 32 dimensions, all whole numbers of 1 or more, and a
 * product that is a safe integer.
 */
export declare function elementCount(shape: readonly unknown[]): number;
/** Returns `shape`. @throws as {@link elementCount} does. */
export declare function checkShape(shape: readonly unknown[]): readonly number[];
/** Returns the bytes of a tensor of this type and shape. */
export declare function tensorBytes(dtype: Dtype, shape: readonly number[]): number;
/**
 * Returns the tensor that a caller has given; the data is not copied.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if type, shape and data do not fit together.
 */
export declare function toTensor(tensor: TensorLike): Tensor;
/** Makes a tensor of zeros. */
export declare function zeros(dtype: Dtype, shape: readonly number[]): Tensor;
/**
 * Computes the L2 norm of a tensor's elements, in float64; integers have the norm 0. It is NaN or infinite
 * exactly if an element is, so that every block of such a gradient is rejected for its norm.
 */
export declare function l2Norm(data: TensorData): number;
/** Returns whether two shapes are the same. */
export declare function sameShape(a: readonly number[], b: readonly number[]): boolean;
/** Returns the bytes of a tensor: a view, not a copy. */
export declare function tensorView(tensor: Tensor): Uint8Array;
//# sourceMappingURL=tensor.d.ts.map