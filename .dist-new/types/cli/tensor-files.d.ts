import type { TensorHeader, TensorSource } from "../model-files/index.ts";
import { type Tensor } from "../protocol/tensor.ts";
/** The parameter that the tensor of a file is for. */
export type ExpectedTensor = TensorHeader;
/** Encodes `{"name":…,"dtype":…,"shape":[…],…entries,"values":[…]}` in chunks, the values flat in C order. */
export declare function encodeJsonTensor(name: string, tensor: Tensor, entries?: Readonly<Record<string, unknown>>): Generator<string, void>;
/**
 * Reads a tensor from JSON: an array of values, flat or nested as the shape says, or the object that {@link
 * encodeJsonTensor} writes.
 * @throws BAD_DTYPE, BAD_SHAPE, BAD_LENGTH if it is of another type or shape; BAD_VALUE for an element that the
 *   type cannot hold exactly, or only as another value.
 */
export declare function decodeJsonTensor(value: unknown, expected: ExpectedTensor): Tensor;
/**
 * Runs `work` for all sources in groups, some at a time: small ones that follow each other are a group, a large
 * one is by itself. After a failure no further one is started, and the call rejects when all have ended.
 */
export declare function inBoundedOrder(sources: readonly TensorSource[], work: (group: readonly TensorSource[]) => Promise<void>): Promise<void>;
/** Reads a tensor of a model file. @throws what the file's reader throws. */
export declare function readTensor(source: TensorSource): Promise<Tensor>;
/** Returns the bytes of the elements of all tensors of a group. */
export declare function groupBytes(group: readonly TensorSource[]): number;
/**
 * Reads the tensor in a file: `.npy`, `.json`, or the little-endian bytes in C order.
 * @throws BAD_VALUE for another ending; IO; BAD_FILE; BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_VALUE if it does
 *   not fit the parameter; TOO_LARGE for JSON above 256 MiB.
 */
export declare function readTensorFile(path: string, expected: ExpectedTensor): Promise<Tensor>;
/** Options for writing a tensor. */
export interface WriteOptions {
    readonly signal: AbortSignal;
    /** Called with the bytes of elements written so far; not for JSON, whose length is not known. */
    readonly onProgress?: (doneBytes: number) => void;
}
/**
 * Writes a tensor into a file: `.npy`, `.json`, or the little-endian bytes in C order. A file
 * appears whole or not at all; a link is followed; a pipe or device is written to and never replaced.
 * Returns the number of bytes.
 * @throws BAD_VALUE for another ending; IO or DISK_FULL; the reason of `signal`.
 */
export declare function writeTensorFile(path: string, name: string, tensor: Tensor, options: WriteOptions): Promise<number>;
/**
 * Checks, before the tensor is read, that it can be written into a file of this name.
 * @throws BAD_VALUE for another ending, IO if it names no place for a file.
 */
export declare function checkTensorTarget(path: string): Promise<void>;
//# sourceMappingURL=tensor-files.d.ts.map