import { type Dtype } from "../protocol/dtypes.ts";
import { PserverError } from "../protocol/errors.ts";
/** Most tensors of one model file; bounds what the headers of a hostile file can allocate. */
export declare const TENSORS_MAX = 100000;
/**
 * Bytes of names, shapes and metadata that a reader accepts from one file: the limit of the
 * safetensors implementation, for every format.
 */
export declare const DESCRIPTION_BYTES_MAX = 100000000;
/** Most values that describe the tensors of one file: a name, shape and place for each, and metadata. */
export declare const DESCRIPTION_VALUES_MAX: number;
/** Description of a tensor in a model file. `shape` is `[]` for a scalar. */
export interface TensorHeader {
    readonly name: string;
    readonly dtype: Dtype;
    readonly shape: readonly number[];
}
/** A tensor of an open model file. */
export interface TensorSource {
    readonly header: TensorHeader;
    /**
     * Yields the tensor's bytes, little-endian, in C order, from the start at each call. Chunks belong to the
     * receiver and may end inside an element. The number of bytes is checked, so a loop that ends without an
     * error had them all.
     */
    chunks(): AsyncIterable<Uint8Array>;
}
/** A model to be written: checked headers, and the source of their bytes. */
export interface OutgoingModel {
    readonly tensors: readonly TensorHeader[];
    readonly metadata: Metadata;
    /**
     * Yields exactly `dataBytes(header)` bytes. The writer does not use a chunk after it has asked for the
     * next.
     */
    readonly chunks: (header: TensorHeader) => AsyncIterable<Uint8Array>;
}
/** Contents of a model file. */
export interface IncomingModel {
    readonly tensors: readonly TensorSource[];
    readonly metadata: Metadata;
}
/** Returns whether a tensor can have this shape. */
export declare function isShape(value: unknown): value is readonly number[];
/**
 * Returns the elements of a tensor of this shape; undefined if no tensor can have it. A dimension may be 0,
 * which a parameter's may not be: files of other programs hold such tensors.
 */
export declare function elementsOf(shape: unknown): number | undefined;
/**
 * Returns the bytes of the tensor's elements.
 * @throws BAD_SHAPE if the shape is not valid.
 */
export declare function dataBytes(header: TensorHeader): number;
/**
 * Checks that a file can be made of these headers.
 * @throws EMPTY, TOO_LARGE for the list; BAD_NAME for a name no parameter can have, or one given
 * twice; BAD_DTYPE, BAD_SHAPE.
 */
export declare function checkHeaders(headers: readonly TensorHeader[]): void;
/**
 * Passes the chunks on and counts them.
 * @throws BAD_LENGTH once there are more bytes than the header says, or at the end if there are
 * fewer.
 */
export declare function exactly(header: TensorHeader, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined>;
/** Makes a BAD_NAME about a parameter that cannot be saved under its name. */
export declare function badName(name: string, expected: string): PserverError;
/** Shows a shape in messages, cut when long. */
export declare function showShape(shape: unknown): string;
/** Text about a model, by key. */
export type Metadata = Readonly<Record<string, string>>;
/**
 * Refuses metadata that not every format can hold.
 * @throws BAD_VALUE naming the key of a value that is not well-formed text; TOO_LARGE above 65,535
 * bytes as JSON.
 */
export declare function checkMetadata(metadata: Readonly<Record<string, unknown>>): void;
/** Writes metadata as JSON, `""` if there is none. */
export declare function encodeMetadata(metadata: Metadata): string;
/** Reads metadata from JSON text; undefined if it is not an object of texts, or too large. */
export declare function parseMetadata(text: string): Metadata | undefined;
/** Returns a parsed JSON value as metadata; undefined if it is not an object of texts. */
export declare function metadataFrom(value: unknown): Metadata | undefined;
//# sourceMappingURL=tensor-headers.d.ts.map