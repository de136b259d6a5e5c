/**
 * The six element types. `code` is the number of PaddlePaddle's `paddle_element_type` and of the C
 * header; elements are little-endian everywhere.
 */
export declare const DTYPES: {
    readonly int32: {
        readonly code: 0;
        readonly bytes: 4;
        readonly float: false;
    };
    readonly uint32: {
        readonly code: 1;
        readonly bytes: 4;
        readonly float: false;
    };
    readonly int64: {
        readonly code: 2;
        readonly bytes: 8;
        readonly float: false;
    };
    readonly uint64: {
        readonly code: 3;
        readonly bytes: 8;
        readonly float: false;
    };
    readonly float32: {
        readonly code: 4;
        readonly bytes: 4;
        readonly float: true;
    };
    readonly float64: {
        readonly code: 5;
        readonly bytes: 8;
        readonly float: true;
    };
};
/** Name of an element type, as in messages, numpy and the C header. */
export type Dtype = keyof typeof DTYPES;
/** The typed arrays that hold elements, one per {@link Dtype}. */
export type TensorData = Int32Array | Uint32Array | BigInt64Array | BigUint64Array | Float32Array | Float64Array;
/** Returns whether `text` names an element type. */
export declare function isDtype(text: unknown): text is Dtype;
/**
 * Returns the element type of a typed array.
 * @throws BAD_DTYPE for any other value.
 */
export declare function dtypeOf(data: unknown): Dtype;
/** Makes a zeroed typed array of `elements` elements. */
export declare function allocateData(dtype: Dtype, elements: number): TensorData;
/** Returns the bytes of a typed array: a view, not a copy. */
export declare function bytesOf(data: TensorData): Uint8Array;
/**
 * Shorter forms of float32 elements in messages; blocks stay float32. `bfloat16` is the upper
 * half of a float32: its range, but 8 bits of precision. `float16` is IEEE 754's binary16: 11 bits of
 * precision, from 6e-8 to 65504.
 */
export declare const ENCODINGS: {
    readonly bfloat16: {
        readonly bytes: 2;
        readonly infiniteFrom: number;
    };
    readonly float16: {
        readonly bytes: 2;
        readonly infiniteFrom: 65520;
    };
};
/** Name of an encoding, as in messages; an absent one means elements as their type has them. */
export type Encoding = keyof typeof ENCODINGS;
/**
 * Returns the least magnitude of a float32 that is an infinity in messages; undefined stands for no encoding.
 */
export declare function infiniteFrom(encoding: Encoding | undefined): number;
/** Returns whether `text` names an encoding. */
export declare function isEncoding(text: unknown): text is Encoding;
/**
 * Returns the bytes of `elements` elements of a type in messages.
 * @throws UNSUPPORTED for an encoding of another type than float32.
 */
export declare function encodedBytes(dtype: Dtype, encoding: Encoding | undefined, elements: number): number;
//# sourceMappingURL=dtypes.d.ts.map