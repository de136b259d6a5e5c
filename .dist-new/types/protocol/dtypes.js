import { PserverError } from "./errors.js";
/**
 * The six element types. `code` is the number of PaddlePaddle's `paddle_element_type` and of the C
 * header; elements are little-endian everywhere.
 */
export const DTYPES = {
    int32: { code: 0, bytes: 4, float: false },
    uint32: { code: 1, bytes: 4, float: false },
    int64: { code: 2, bytes: 8, float: false },
    uint64: { code: 3, bytes: 8, float: false },
    float32: { code: 4, bytes: 4, float: true },
    float64: { code: 5, bytes: 8, float: true },
};
/** Returns whether `text` names an element type. */
export function isDtype(text) {
    return typeof text === "string" && Object.hasOwn(DTYPES, text);
}
/**
 * Returns the element type of a typed array.
 * @throws BAD_DTYPE for any other value.
 */
export function dtypeOf(data) {
    if (data instanceof Float32Array)
        return "float32";
    if (data instanceof Float64Array)
        return "float64";
    if (data instanceof Int32Array)
        return "int32";
    if (data instanceof Uint32Array)
        return "uint32";
    if (data instanceof BigInt64Array)
        return "int64";
    if (data instanceof BigUint64Array)
        return "uint64";
    const received = data === null ? "null" : (data?.constructor?.name ?? typeof data);
    throw new PserverError("BAD_DTYPE", `expected a typed array of ${Object.keys(DTYPES).join(", ")}; received ${received}`, { expected: Object.keys(DTYPES), received });
}
/** Makes a zeroed typed array of `elements` elements. */
export function allocateData(dtype, elements) {
    switch (dtype) {
        case "float32":
            return new Float32Array(elements);
        case "float64":
            return new Float64Array(elements);
        case "int32":
            return new Int32Array(elements);
        case "uint32":
            return new Uint32Array(elements);
        case "int64":
            return new BigInt64Array(elements);
        case "uint64":
            return new BigUint64Array(elements);
    }
}
/** Returns the bytes of a typed array: a view, not a copy. */
export function bytesOf(data) {
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
/**
 * Shorter forms of float32 elements in messages; blocks stay float32. `bfloat16` is the upper
 * half of a float32: its range, but 8 bits of precision. `float16` is IEEE 754's binary16: 11 bits of
 * precision, from 6e-8 to 65504.
 */
export const ENCODINGS = {
    bfloat16: { bytes: 2, infiniteFrom: 2 ** 128 - 2 ** 119 },
    float16: { bytes: 2, infiniteFrom: 65_520 },
};
/**
 * Returns the least magnitude of a float32 that is an infinity in messages; undefined stands for no encoding.
 */
export function infiniteFrom(encoding) {
    return encoding === undefined ? Number.POSITIVE_INFINITY : ENCODINGS[encoding].infiniteFrom;
}
/** Returns whether `text` names an encoding. */
export function isEncoding(text) {
    return typeof text === "string" && Object.hasOwn(ENCODINGS, text);
}
/**
 * Returns the bytes of `elements` elements of a type in messages.
 * @throws UNSUPPORTED for an encoding of another type than float32.
 */
export function encodedBytes(dtype, encoding, elements) {
    if (encoding === undefined)
        return elements * DTYPES[dtype].bytes;
    if (dtype === "float32")
        return elements * ENCODINGS[encoding].bytes;
    throw new PserverError("UNSUPPORTED", `encoding: ${encoding} is for float32 elements; received ${dtype}`, { expected: "float32", received: dtype });
}
//# sourceMappingURL=dtypes.js.map