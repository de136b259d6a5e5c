import { allocateData, bytesOf, DTYPES, dtypeOf, isDtype, } from "./dtypes.js";
import { float32Norm } from "./encoding/encoding.js";
import { PserverError } from "./errors.js";
import { RANK_MAX } from "./limits.js";
/**
 * Returns the number of elements of a shape.
 * @throws BAD_SHAPE unless it has at most 32 dimensions, all whole numbers of 1 or more, and a
 * product that is a safe integer.
 */
export function elementCount(shape) {
    if (!Array.isArray(shape) || shape.length > RANK_MAX) {
        throw badShape(`a list of at most ${RANK_MAX} dimensions`, shape);
    }
    let elements = 1;
    for (const size of shape) {
        if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 1) {
            throw badShape("dimensions that are whole numbers of 1 or more", shape);
        }
        elements *= size;
        if (!Number.isSafeInteger(elements))
            throw badShape("fewer than 2^53 elements", shape);
    }
    return elements;
}
/** Returns `shape`. @throws as {@link elementCount} does. */
export function checkShape(shape) {
    elementCount(shape);
    return shape;
}
/** Returns the bytes of a tensor of this type and shape. */
export function tensorBytes(dtype, shape) {
    return elementCount(shape) * DTYPES[dtype].bytes;
}
/**
 * Returns the tensor that a caller has given; the data is not copied.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if type, shape and data do not fit together.
 */
export function toTensor(tensor) {
    if (ArrayBuffer.isView(tensor))
        return { dtype: dtypeOf(tensor), shape: [checkedLength(tensor)], data: tensor };
    const dtype = dtypeOf(tensor?.data);
    if (!isDtype(tensor.dtype) || tensor.dtype !== dtype) {
        throw new PserverError("BAD_DTYPE", `dtype: the data is ${dtype}; received dtype ${String(tensor.dtype)}`, { expected: dtype, received: String(tensor.dtype) });
    }
    const elements = elementCount(tensor.shape);
    if (elements !== tensor.data.length) {
        throw new PserverError("BAD_LENGTH", `shape [${tensor.shape}] takes ${elements} elements; received ${tensor.data.length}`, { expected: elements, received: tensor.data.length });
    }
    return { dtype, shape: [...tensor.shape], data: tensor.data };
}
/** Makes a tensor of zeros. */
export function zeros(dtype, shape) {
    return { dtype, shape: [...shape], data: allocateData(dtype, elementCount(shape)) };
}
/**
 * Computes the L2 norm of a tensor's elements, in float64; integers have the norm 0. It is NaN or infinite
 * exactly if an element is, so that every block of such a gradient is rejected for its norm.
 */
export function l2Norm(data) {
    if (data instanceof Float32Array)
        return float32Norm(data);
    if (!(data instanceof Float64Array))
        return 0;
    const plain = Math.sqrt(sumOfSquares(data, 1));
    if (Number.isFinite(plain))
        return plain;
    // Squares of large values overflow. Only if they did are the elements scaled by the largest one.
    let largest = 0;
    for (const value of data) {
        if (!Number.isFinite(value))
            return value * value;
        largest = Math.max(largest, Math.abs(value));
    }
    return Math.min(largest * Math.sqrt(sumOfSquares(data, largest)), Number.MAX_VALUE);
}
/** Returns whether two shapes are the same. */
export function sameShape(a, b) {
    return a.length === b.length && a.every((size, i) => size === b[i]);
}
/** Returns the bytes of a tensor: a view, not a copy. */
export function tensorView(tensor) {
    return bytesOf(tensor.data);
}
function sumOfSquares(data, scale) {
    // Four sums let four multiplications run at a time; multiplying by a factor is cheaper than dividing.
    const factor = 1 / scale;
    const whole = data.length - (data.length % 4);
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let i = 0; i < whole; i += 4) {
        const value0 = data[i] * factor;
        const value1 = data[i + 1] * factor;
        const value2 = data[i + 2] * factor;
        const value3 = data[i + 3] * factor;
        sum0 += value0 * value0;
        sum1 += value1 * value1;
        sum2 += value2 * value2;
        sum3 += value3 * value3;
    }
    for (let i = whole; i < data.length; i++)
        sum0 += (data[i] * factor) ** 2;
    return sum0 + sum1 + sum2 + sum3;
}
function checkedLength(data) {
    if (data.length > 0)
        return data.length;
    throw badShape("at least one element", [0]);
}
function badShape(expected, received) {
    const shown = Array.isArray(received) ? received.slice(0, 40) : typeof received;
    const text = Array.isArray(shown) ? `[${shown}]` : shown;
    return new PserverError("BAD_SHAPE", `shape: expected ${expected}; received ${text}`, {
        expected,
        received: shown,
    });
}
//# sourceMappingURL=tensor.js.map