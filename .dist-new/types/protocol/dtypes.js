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
    return viewData(dtype, new ArrayBuffer(elements * DTYPES[dtype].bytes), elements);
}
/** Returns the first `elements` elements in a buffer. */
export function viewData(dtype, buffer, elements) {
    switch (dtype) {
        case "float32":
            return new Float32Array(buffer, 0, elements);
        case "float64":
            return new Float64Array(buffer, 0, elements);
        case "int32":
            return new Int32Array(buffer, 0, elements);
        case "uint32":
            return new Uint32Array(buffer, 0, elements);
        case "int64":
            return new BigInt64Array(buffer, 0, elements);
        case "uint64":
            return new BigUint64Array(buffer, 0, elements);
    }
}
/** Returns the bytes of a typed array: a view, not a copy. */
export function bytesOf(data) {
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
/**
 * Shorter forms of float32 elements in messages; blocks stay float32. `bfloat16` is the upper
 * half of a float32: its range, but 8 bits of precision. `float16` is IEEE 754's binary16: 11 bits of
 * precision, from 6e-8 to 65504. `int8` and `e3m0` have a float32 scale for each group of elements: an element is its
 * scale times a whole number from -127 to 127, or times 0 or one of the powers of two from 2^-6 to 1 with a sign.
 */
export const ENCODINGS = {
    bfloat16: { bits: 16, infiniteFrom: 2 ** 128 - 2 ** 119 },
    float16: { bits: 16, infiniteFrom: 65_520 },
    int8: { bits: 8, infiniteFrom: Number.POSITIVE_INFINITY },
    e3m0: { bits: 4, infiniteFrom: Number.POSITIVE_INFINITY },
};
/** Elements that share a scale in a grouped encoding; the last group of an entry may have fewer. */
export const GROUP_ELEMENTS = 256;
/** Bytes of a group's scale. */
export const SCALE_BYTES = 4;
/** Returns whether groups of elements have scales in an encoding; false for undefined, which is none. */
export function isGrouped(encoding) {
    return encoding === "int8" || encoding === "e3m0";
}
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
/** Returns the number of groups of an entry of `elements` elements. */
export function groupCount(elements) {
    return Math.ceil(elements / GROUP_ELEMENTS);
}
/** Returns the bytes of the codes of an entry of `elements` elements, without scales. */
export function codeBytes(encoding, elements) {
    return Math.ceil((elements * ENCODINGS[encoding].bits) / 8);
}
/**
 * Returns the bytes of an entry of `elements` elements of a type in messages, with its scales.
 * @throws UNSUPPORTED for an encoding of another type than float32.
 */
export function encodedBytes(dtype, encoding, elements) {
    if (encoding === undefined)
        return elements * DTYPES[dtype].bytes;
    if (dtype === "float32") {
        const scaleBytes = isGrouped(encoding) ? groupCount(elements) * SCALE_BYTES : 0;
        return scaleBytes + codeBytes(encoding, elements);
    }
    throw new PserverError("UNSUPPORTED", `encoding: ${encoding} is for float32 elements; received ${dtype}`, { expected: "float32", received: dtype });
}
/**
 * Returns how many elements an entry of `bytes` bytes has; undefined if there is none of so many bytes. Of an odd
 * number of elements in `e3m0`, which take as many bytes as one more does, it returns one more.
 * @throws UNSUPPORTED as {@link encodedBytes} does.
 */
export function elementsIn(dtype, encoding, bytes) {
    let codes = bytes;
    if (isGrouped(encoding)) {
        const groups = Math.ceil(bytes / encodedBytes(dtype, encoding, GROUP_ELEMENTS));
        codes -= groups * SCALE_BYTES;
        if (codes <= codeBytes(encoding, (groups - 1) * GROUP_ELEMENTS))
            return undefined;
    }
    const elements = (codes * 8) / bitsOf(dtype, encoding);
    return elements > 0 && Number.isSafeInteger(elements) ? elements : undefined;
}
function bitsOf(dtype, encoding) {
    if (encoding === undefined)
        return DTYPES[dtype].bytes * 8;
    encodedBytes(dtype, encoding, 1);
    return ENCODINGS[encoding].bits;
}
//# sourceMappingURL=dtypes.js.map