import { DTYPES, type Dtype } from "../dtypes.ts";
import { PserverError } from "../errors.ts";

/** Properties of an encoding of float32 elements. */
interface EncodingForm {
  readonly bytes: 2;
  /** The least magnitude that becomes an infinity; a float32. */
  readonly infiniteFrom: number;
}

/**
 * Shorter forms of float32 elements in messages; blocks stay float32. `bfloat16` is the upper
 * half of a float32: its range, but 8 bits of precision. `float16` is IEEE 754's binary16: 11 bits of
 * precision, from 6e-8 to 65504.
 */
export const ENCODINGS = {
  bfloat16: { bytes: 2, infiniteFrom: 2 ** 128 - 2 ** 119 },
  float16: { bytes: 2, infiniteFrom: 65_520 },
} as const satisfies Record<string, EncodingForm>;

/** Name of an encoding, as in messages; an absent one means elements as their type has them. */
export type Encoding = keyof typeof ENCODINGS;

/** The least magnitude of a float32 that is an infinity in messages; `undefined` means not encoded. */
export function infiniteFrom(encoding: Encoding | undefined): number {
  return encoding === undefined ? Number.POSITIVE_INFINITY : ENCODINGS[encoding].infiniteFrom;
}

/** Whether `text` names an encoding. */
export function isEncoding(text: unknown): text is Encoding {
  return typeof text === "string" && Object.hasOwn(ENCODINGS, text);
}

/**
 * Bytes of `elements` elements of a type in messages.
 * @throws UNSUPPORTED for an encoding of another type than float32.
 */
export function encodedBytes(
  dtype: Dtype,
  encoding: Encoding | undefined,
  elements: number,
): number {
  if (encoding === undefined) return elements * DTYPES[dtype].bytes;
  if (dtype === "float32") return elements * ENCODINGS[encoding].bytes;
  throw new PserverError(
    "UNSUPPORTED",
    `encoding: ${encoding} is for float32 elements; received ${dtype}`,
    { expected: "float32", received: dtype },
  );
}
