import { allocateData, type Dtype, isDtype, type TensorData } from "../../protocol/dtypes.ts";
import { mismatch } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import type { WireArray } from "./frames.ts";

/**
 * Converts an array to the parameter's type. Legion's server took any type, as numpy does, so a script may
 * push float64 into float32. Floats are rounded to nearest; integers must fit.
 * @throws BAD_DTYPE for floats where the parameter has integers, BAD_VALUE for an integer that does not fit.
 */
export function fitDtype(name: string, array: WireArray, dtype: Dtype): WireArray {
  if (array.dtype === dtype || !isDtype(dtype)) return array;
  if (array.dtype.startsWith("float") && !dtype.startsWith("float")) {
    throw mismatch("BAD_DTYPE", quoteName(name), dtype, array.dtype);
  }
  const data = allocateData(dtype, array.data.length);
  for (let i = 0; i < data.length; i++) convert(name, array.data[i] ?? 0, data, i);
  return { dtype, shape: array.shape, data };
}

function convert(name: string, value: number | bigint, data: TensorData, i: number): void {
  data[i] =
    data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(value) : Number(value);
  const isFloat = data instanceof Float32Array || data instanceof Float64Array;
  if (isFloat || BigInt(data[i] ?? 0) === BigInt(value)) return;
  throw mismatch("BAD_VALUE", quoteName(name), "integers of its type", String(value));
}
