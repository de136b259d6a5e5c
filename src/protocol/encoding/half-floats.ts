import { bytesOf, type Dtype, type HalfDtype, isHalf, type TensorData } from "../dtypes.ts";
import { decodeElements, encodeElements } from "./encoding.ts";

/** The typed arrays whose elements are numbers as they stand: all but the bits of half floats. */
export type NumericData = Exclude<TensorData, Uint16Array>;

/**
 * Returns elements as numbers: half floats as float32, exactly, in a new array; those of any other type are not copied.
 */
export function toNumbers(dtype: Dtype, data: TensorData): NumericData {
  if (!isHalf(dtype) || !(data instanceof Uint16Array)) return data as NumericData;
  const floats = new Float32Array(data.length);
  decodeElements(dtype, bytesOf(data), floats);
  return floats;
}

/** Returns the bits of numbers as half floats, each rounded to nearest, ties to even; NaN becomes the canonical one. */
export function toHalfFloats(dtype: HalfDtype, floats: Float32Array): Uint16Array {
  const halves = new Uint16Array(floats.length);
  encodeElements(dtype, floats, bytesOf(halves));
  return halves;
}

/** For each type of half floats, the bits of infinity. Without the sign, those of a finite number are smaller. */
const INFINITY = { float16: 0x7c00, bfloat16: 0x7f80 } as const satisfies Record<HalfDtype, number>;

/** Finds the first half float, by its bits, that is NaN or infinite; -1 if all are finite. */
export function firstNonFinite(dtype: HalfDtype, halves: Uint16Array): number {
  return halves.findIndex((bits) => (bits & 0x7fff) >= INFINITY[dtype]);
}
