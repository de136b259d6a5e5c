import { recordOf } from "../../model-files/json-record.ts";
import { allocateData, type TensorData } from "../../protocol/dtypes.ts";
import { elementCount, sameShape, type Tensor } from "../../protocol/tensor.ts";
import { jsonElement } from "../output/elements.ts";
import { visibleJson } from "../output/visible.ts";
import { type ExpectedTensor, tensorMismatch } from "./expected-tensor.ts";

/** Elements in one piece of text, which has some hundred KiB. */
const PIECE_ELEMENTS = 16_384;

/**
 * Encodes `{"name":…,"dtype":…,"shape":[…],…entries,"values":[…]}` in pieces, the values flat in C
 * order.
 */
export function* encodeJsonTensor(
  name: string,
  tensor: Tensor,
  entries: Readonly<Record<string, unknown>> = {},
): Generator<string, void> {
  const { dtype, shape, data } = tensor;
  yield `${visibleJson({ name, dtype, shape, ...entries }).slice(0, -1)},"values":[`;
  for (let start = 0; start < data.length; start += PIECE_ELEMENTS) {
    const count = Math.min(PIECE_ELEMENTS, data.length - start);
    const texts = Array.from({ length: count }, (_, i) => jsonElement(data, start + i));
    yield (start > 0 ? "," : "") + texts.join(",");
  }
  yield "]}\n";
}

/**
 * A tensor from JSON: an array of values, flat or nested as the shape says, or the object that
 * {@link encodeJsonTensor} writes.
 * @throws BAD_DTYPE, BAD_SHAPE, BAD_LENGTH if it is of another type or shape; BAD_VALUE for an
 * element that the type cannot hold exactly, or only as another value.
 */
export function decodeJsonTensor(value: unknown, expected: ExpectedTensor): Tensor {
  const values = checkedValues(value, expected);
  const data = allocateData(expected.dtype, elementCount(expected.shape));
  const flat = values.every((element) => !Array.isArray(element));
  fill(data, 0, values, flat ? [data.length] : expected.shape, expected);
  return { dtype: expected.dtype, shape: expected.shape, data };
}

function checkedValues(value: unknown, expected: ExpectedTensor): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value === "number" && expected.shape.length === 0) return [value];
  const { dtype = expected.dtype, shape = expected.shape, values } = recordOf(value);
  if (dtype !== expected.dtype) {
    throw tensorMismatch("BAD_DTYPE", "dtype", expected.dtype, String(dtype), expected);
  }
  if (!Array.isArray(shape) || !sameShape(shape, expected.shape)) {
    const received = JSON.stringify(shape);
    throw tensorMismatch("BAD_SHAPE", "shape", `[${expected.shape}]`, received, expected);
  }
  if (Array.isArray(values)) return values;
  const wanted = "an array, or an object with values";
  throw tensorMismatch("BAD_VALUE", "JSON", wanted, typeof value, expected);
}

/** Copies nested arrays into flat data; returns the index for the next element. */
function fill(
  data: TensorData,
  start: number,
  values: readonly unknown[],
  shape: readonly number[],
  expected: ExpectedTensor,
): number {
  const [size = 1, ...inner] = shape;
  if (values.length !== size) {
    const code = inner.length === 0 && shape.length <= 1 ? "BAD_LENGTH" : "BAD_SHAPE";
    throw tensorMismatch(code, "values of one axis", String(size), String(values.length), expected);
  }
  let at = start;
  for (const value of values) {
    if (inner.length > 0) {
      if (!Array.isArray(value))
        throw tensorMismatch("BAD_SHAPE", "element", "an array", show(value), expected);
      at = fill(data, at, value, inner, expected);
    } else {
      setElement(data, at++, value, expected);
    }
  }
  return at;
}

function setElement(data: TensorData, at: number, value: unknown, expected: ExpectedTensor): void {
  const isBig = data instanceof BigInt64Array || data instanceof BigUint64Array;
  if (isBig ? setBig(data, at, value) : setPlain(data, at, value)) return;
  const wanted = `a value of ${expected.dtype}`;
  throw tensorMismatch("BAD_VALUE", `element ${at}`, wanted, show(value), expected);
}

type BigData = Extract<TensorData, { readonly [at: number]: bigint }>;

function setBig(data: BigData, at: number, value: unknown): boolean {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text !== "string" || !/^-?\d{1,20}$/.test(text)) return false;
  const integer = BigInt(text);
  data[at] = integer;
  return data[at] === integer;
}

function setPlain(data: Exclude<TensorData, BigData>, at: number, value: unknown): boolean {
  const named = value === "NaN" || value === "Infinity" || value === "-Infinity";
  const number = named ? Number(value) : value;
  if (typeof number !== "number") return false;
  data[at] = number;
  const stored = data[at];
  // Rounding a float is intended; an integer that wraps or a float that overflows is an error.
  if (data instanceof Float32Array || data instanceof Float64Array) {
    return named || Number.isFinite(stored);
  }
  return stored === number;
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? typeof value).slice(0, 60);
}
