import { PserverError } from "./errors.ts";

/**
 * The element types. `code` is the number in the C header; the first six are those of PaddlePaddle's
 * `paddle_element_type`. Elements are little-endian everywhere. A `bool` is a byte, 0 or 1; `float16` is IEEE 754's
 * binary16, and `bfloat16` is the upper half of a float32.
 */
export const DTYPES = {
  int32: { code: 0, bytes: 4, float: false },
  uint32: { code: 1, bytes: 4, float: false },
  int64: { code: 2, bytes: 8, float: false },
  uint64: { code: 3, bytes: 8, float: false },
  float32: { code: 4, bytes: 4, float: true },
  float64: { code: 5, bytes: 8, float: true },
  bool: { code: 6, bytes: 1, float: false },
  uint8: { code: 7, bytes: 1, float: false },
  int8: { code: 8, bytes: 1, float: false },
  float16: { code: 9, bytes: 2, float: true },
  bfloat16: { code: 10, bytes: 2, float: true },
} as const satisfies Record<string, { code: number; bytes: number; float: boolean }>;

/** Name of an element type, as in messages, numpy and the C header. */
export type Dtype = keyof typeof DTYPES;

/** Element types of two bytes. They are computed with as float32, and rounded once when they are stored. */
export type HalfDtype = "float16" | "bfloat16";

/** Returns whether elements of this type are half floats. */
export function isHalf(dtype: Dtype): dtype is HalfDtype {
  return dtype === "float16" || dtype === "bfloat16";
}

/** The typed array that holds elements of each type: those of half floats are their bits. */
const ARRAYS = {
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
} as const satisfies Record<Dtype, unknown>;

/** The typed arrays that hold elements. Bits of half floats are in a Uint16Array, and bools in a Uint8Array. */
export type TensorData =
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array
  | Uint8Array
  | Int8Array
  | Uint16Array;

/** Returns whether `text` names an element type. */
export function isDtype(text: unknown): text is Dtype {
  return typeof text === "string" && Object.hasOwn(DTYPES, text);
}

/** Types that a bare typed array has; the others share an array with one of these, or with each other. */
const BARE_DTYPES = (Object.keys(DTYPES) as Dtype[]).filter(
  (name) => name !== "bool" && !isHalf(name),
);

/**
 * Returns the element type of a bare typed array; that of a Uint8Array is uint8.
 * @throws BAD_DTYPE for any other value, also for a Uint16Array, which may hold either type of half floats.
 */
export function dtypeOf(data: unknown): Dtype {
  const dtype = BARE_DTYPES.find((name) => holds(name, data));
  if (dtype !== undefined) return dtype;
  const received = kindOf(data);
  const expected =
    data instanceof Uint16Array
      ? "the bits of half floats as a tensor {dtype, shape, data} whose dtype is float16 or bfloat16"
      : `a typed array of ${BARE_DTYPES.join(", ")}`;
  throw new PserverError("BAD_DTYPE", `expected ${expected}; received a bare ${received}`, {
    expected: Object.keys(DTYPES),
    received,
  });
}

/** Returns whether `data` is the typed array that holds elements of a type. */
export function holds(dtype: Dtype, data: unknown): data is TensorData {
  return data instanceof ARRAYS[dtype];
}

/** Names the array that holds elements of a type, for messages. */
export function arrayName(dtype: Dtype): string {
  return ARRAYS[dtype].name;
}

/** Names the class of any value, for messages. */
export function kindOf(data: unknown): string {
  return data === null ? "null" : (data?.constructor?.name ?? typeof data);
}

/** Makes a zeroed typed array of `elements` elements. */
export function allocateData(dtype: Dtype, elements: number): TensorData {
  return viewData(dtype, new ArrayBuffer(elements * DTYPES[dtype].bytes), elements);
}

/** Returns the first `elements` elements in a buffer, or those from a byte on where one of the type may begin. */
export function viewData(
  dtype: Dtype,
  buffer: ArrayBuffer,
  elements: number,
  fromByte = 0,
): TensorData {
  return new ARRAYS[dtype](buffer, fromByte, elements);
}

const CLASSES = Object.values(ARRAYS);

/** Returns the first `elements` elements in a buffer as an array of the same class as `like`. */
export function sameArray(like: TensorData, buffer: ArrayBuffer, elements: number): TensorData {
  const Class = CLASSES.find((each) => like instanceof each) ?? Uint8Array;
  return new Class(buffer, 0, elements);
}

/** Returns the bytes of a typed array: a view, not a copy. */
export function bytesOf(data: TensorData): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Properties of an encoding of float32 elements. */
interface EncodingForm {
  /** Bits of an element, without the scale of its group. */
  readonly bits: 4 | 8 | 16;
  /** Least magnitude of a float32 that is encoded as an infinity. */
  readonly infiniteFrom: number;
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
} as const satisfies Record<string, EncodingForm>;

/** Elements that share a scale in a grouped encoding; the last group of an entry may have fewer. */
export const GROUP_ELEMENTS = 256;

/** Bytes of a group's scale. */
export const SCALE_BYTES = 4;

/** Name of an encoding, as in messages; an absent one means elements as their type has them. */
export type Encoding = keyof typeof ENCODINGS;

/** Name of an encoding whose groups of elements have scales. */
export type GroupedEncoding = "int8" | "e3m0";

/** Name of an encoding in which each element stands for itself, in two bytes. */
export type HalfEncoding = Exclude<Encoding, GroupedEncoding>;

/** Returns whether groups of elements have scales in an encoding; false for undefined, which is none. */
export function isGrouped(encoding: Encoding | undefined): encoding is GroupedEncoding {
  return encoding === "int8" || encoding === "e3m0";
}

/**
 * Returns the least magnitude of a float32 that is an infinity in messages; undefined stands for no encoding.
 */
export function infiniteFrom(encoding: Encoding | undefined): number {
  return encoding === undefined ? Number.POSITIVE_INFINITY : ENCODINGS[encoding].infiniteFrom;
}

/** Returns whether `text` names an encoding. */
export function isEncoding(text: unknown): text is Encoding {
  return typeof text === "string" && Object.hasOwn(ENCODINGS, text);
}

/** Returns the number of groups of an entry of `elements` elements. */
export function groupCount(elements: number): number {
  return Math.ceil(elements / GROUP_ELEMENTS);
}

/** Returns the bytes of the codes of an entry of `elements` elements, without scales. */
export function codeBytes(encoding: Encoding, elements: number): number {
  return Math.ceil((elements * ENCODINGS[encoding].bits) / 8);
}

/**
 * Returns the bytes of an entry of `elements` elements of a type in messages, with its scales.
 * @throws UNSUPPORTED for an encoding of another type than float32.
 */
export function encodedBytes(
  dtype: Dtype,
  encoding: Encoding | undefined,
  elements: number,
): number {
  if (encoding === undefined) return elements * DTYPES[dtype].bytes;
  if (dtype === "float32") {
    const scaleBytes = isGrouped(encoding) ? groupCount(elements) * SCALE_BYTES : 0;
    return scaleBytes + codeBytes(encoding, elements);
  }
  throw new PserverError(
    "UNSUPPORTED",
    `encoding: ${encoding} is for float32 elements; received ${dtype}`,
    { expected: "float32", received: dtype },
  );
}

/**
 * Returns how many elements an entry of `bytes` bytes has; undefined if there is none of so many bytes. Of an odd
 * number of elements in `e3m0`, which take as many bytes as one more does, it returns one more.
 * @throws UNSUPPORTED as {@link encodedBytes} does.
 */
export function elementsIn(
  dtype: Dtype,
  encoding: Encoding | undefined,
  bytes: number,
): number | undefined {
  let codes = bytes;
  if (isGrouped(encoding)) {
    const groups = Math.ceil(bytes / encodedBytes(dtype, encoding, GROUP_ELEMENTS));
    codes -= groups * SCALE_BYTES;
    if (codes <= codeBytes(encoding, (groups - 1) * GROUP_ELEMENTS)) return undefined;
  }
  const elements = (codes * 8) / bitsOf(dtype, encoding);
  return elements > 0 && Number.isSafeInteger(elements) ? elements : undefined;
}

function bitsOf(dtype: Dtype, encoding: Encoding | undefined): number {
  if (encoding === undefined) return DTYPES[dtype].bytes * 8;
  encodedBytes(dtype, encoding, 1);
  return ENCODINGS[encoding].bits;
}
