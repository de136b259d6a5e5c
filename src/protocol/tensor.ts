import {
  allocateData,
  arrayName,
  bytesOf,
  DTYPES,
  type Dtype,
  dtypeOf,
  holds,
  isDtype,
  kindOf,
  type TensorData,
} from "./dtypes.ts";
import { float32Norm } from "./encoding/encoding.ts";
import type { NumericData } from "./encoding/half-floats.ts";
import { PserverError } from "./errors.ts";
import { RANK_MAX } from "./limits.ts";

/**
 * A tensor in C order. `shape` [] is a scalar of one element. `data` has bools as 0 and 1 in a Uint8Array, and half
 * floats as their bits in a Uint16Array.
 */
export interface Tensor {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly data: TensorData;
}

/**
 * A tensor as calls accept it: with its shape, or a bare typed array of one dimension. Bools and half floats cannot be
 * told by their array, so a tensor of them names its `dtype`.
 */
export type TensorLike = Tensor | TensorData;

/**
 * Returns the number of elements of a shape.
 * @throws BAD_SHAPE unless it has at most 32 dimensions, all whole numbers of 1 or more, and a
 * product that is a safe integer.
 */
export function elementCount(shape: readonly unknown[]): number {
  if (!Array.isArray(shape) || shape.length > RANK_MAX) {
    throw badShape(`a list of at most ${RANK_MAX} dimensions`, shape);
  }
  let elements = 1;
  for (const size of shape) {
    if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 1) {
      throw badShape("dimensions that are whole numbers of 1 or more", shape);
    }
    elements *= size;
    if (!Number.isSafeInteger(elements)) throw badShape("fewer than 2^53 elements", shape);
  }
  return elements;
}

/** Returns `shape`. @throws as {@link elementCount} does. */
export function checkShape(shape: readonly unknown[]): readonly number[] {
  elementCount(shape);
  return shape as readonly number[];
}

/** Returns the bytes of a tensor of this type and shape. */
export function tensorBytes(dtype: Dtype, shape: readonly number[]): number {
  return elementCount(shape) * DTYPES[dtype].bytes;
}

/**
 * Returns the tensor that a caller has given; the data is not copied.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if type, shape and data do not fit together; BAD_VALUE for a bool that is
 * neither 0 nor 1.
 */
export function toTensor(tensor: TensorLike): Tensor {
  if (ArrayBuffer.isView(tensor))
    return { dtype: dtypeOf(tensor), shape: [checkedLength(tensor)], data: tensor };
  const dtype = namedDtype(tensor);
  const elements = elementCount(tensor.shape);
  if (elements !== tensor.data.length) {
    throw new PserverError(
      "BAD_LENGTH",
      `shape [${tensor.shape}] takes ${elements} elements; received ${tensor.data.length}`,
      { expected: elements, received: tensor.data.length },
    );
  }
  if (dtype === "bool") checkBools(tensor.data as Uint8Array);
  return { dtype, shape: [...tensor.shape], data: tensor.data };
}

/**
 * Returns the element type that a tensor names.
 * @throws BAD_DTYPE for an unknown one, or one whose elements are in another array than the data.
 */
export function namedDtype(tensor: Tensor): Dtype {
  const { dtype, data } = tensor ?? {};
  if (isDtype(dtype) && holds(dtype, data)) return dtype;
  // Says what the data is if it is nothing that a tensor may have.
  if (!(data instanceof Uint16Array)) dtypeOf(data);
  const expected = isDtype(dtype)
    ? `a ${arrayName(dtype)} for ${dtype}`
    : `the dtype of a ${kindOf(data)}`;
  const received = isDtype(dtype) ? `a ${kindOf(data)}` : `dtype ${String(dtype)}`;
  throw new PserverError("BAD_DTYPE", `dtype: expected ${expected}; received ${received}`, {
    expected,
    received,
  });
}

function checkBools(data: Uint8Array): void {
  const index = data.findIndex((value) => value > 1);
  if (index < 0) return;
  throw new PserverError(
    "BAD_VALUE",
    `expected bools as 0 and 1; received ${data[index]} as element ${index}`,
    { expected: "0 or 1", received: data[index], index },
  );
}

/** Makes a tensor of zeros. */
export function zeros(dtype: Dtype, shape: readonly number[]): Tensor {
  return { dtype, shape: [...shape], data: allocateData(dtype, elementCount(shape)) };
}

/**
 * Computes the L2 norm of elements, in float64; integers have the norm 0, and half floats must be given as
 * numbers. It is NaN or infinite
 * exactly if an element is, so that every block of such a gradient is rejected for its norm.
 */
export function l2Norm(data: NumericData): number {
  if (data instanceof Float32Array) return float32Norm(data);
  if (!(data instanceof Float64Array)) return 0;
  const plain = Math.sqrt(sumOfSquares(data, 1));
  if (Number.isFinite(plain)) return plain;
  // Squares of large values overflow. Only if they did are the elements scaled by the largest one.
  let largest = 0;
  for (const value of data) {
    if (!Number.isFinite(value)) return value * value;
    largest = Math.max(largest, Math.abs(value));
  }
  return Math.min(largest * Math.sqrt(sumOfSquares(data, largest)), Number.MAX_VALUE);
}

/** Returns whether two shapes are the same. */
export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, i) => size === b[i]);
}

/** Returns the bytes of a tensor: a view, not a copy. */
export function tensorView(tensor: Tensor): Uint8Array {
  return bytesOf(tensor.data);
}

function sumOfSquares(data: Float64Array, scale: number): number {
  // Four sums let four multiplications run at a time; multiplying by a factor is cheaper than dividing.
  const factor = 1 / scale;
  const whole = data.length - (data.length % 4);
  let sum0 = 0;
  let sum1 = 0;
  let sum2 = 0;
  let sum3 = 0;
  for (let i = 0; i < whole; i += 4) {
    const value0 = (data[i] as number) * factor;
    const value1 = (data[i + 1] as number) * factor;
    const value2 = (data[i + 2] as number) * factor;
    const value3 = (data[i + 3] as number) * factor;
    sum0 += value0 * value0;
    sum1 += value1 * value1;
    sum2 += value2 * value2;
    sum3 += value3 * value3;
  }
  for (let i = whole; i < data.length; i++) sum0 += ((data[i] as number) * factor) ** 2;
  return sum0 + sum1 + sum2 + sum3;
}

function checkedLength(data: TensorData): number {
  if (data.length > 0) return data.length;
  throw badShape("at least one element", [0]);
}

function badShape(expected: string, received: unknown): PserverError {
  const shown: unknown = Array.isArray(received) ? received.slice(0, 40) : typeof received;
  const text = Array.isArray(shown) ? `[${shown}]` : shown;
  return new PserverError("BAD_SHAPE", `shape: expected ${expected}; received ${text}`, {
    expected,
    received: shown,
  });
}
