import {
  allocateData,
  DTYPES,
  type Dtype,
  isHalf,
  type TensorData,
} from "../../src/protocol/dtypes.ts";
import { toHalfFloats } from "../../src/protocol/encoding/half-floats.ts";

/** The element types that can be computed with. */
export const NUMBER_DTYPES = (Object.keys(DTYPES) as Dtype[]).filter((dtype) => dtype !== "bool");

/** Whole numbers up to this are exact in every type but bool, and so are five times as large ones. */
export const EXACT_MAX = 25;

/** Elements of a type with the values of numbers, which are rounded, wrapped or, as bools, 0 and not 0. */
export function fromNumbers(dtype: Dtype, numbers: ArrayLike<number>): TensorData {
  if (isHalf(dtype)) return toHalfFloats(dtype, Float32Array.from(numbers));
  const data = allocateData(dtype, numbers.length);
  const entries = data as { [i: number]: number | bigint };
  const isWide = dtype === "int64" || dtype === "uint64";
  for (let i = 0; i < numbers.length; i++) {
    const value = numbers[i] as number;
    if (dtype === "bool") entries[i] = value === 0 ? 0 : 1;
    else entries[i] = isWide ? BigInt(Math.trunc(value)) : value;
  }
  return data;
}
