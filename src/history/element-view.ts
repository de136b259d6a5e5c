import { DTYPES, type Dtype, type TensorData } from "../protocol/dtypes.ts";

const ARRAYS = {
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
} as const satisfies Record<Dtype, unknown>;

/** The elements in little-endian bytes that begin where an element of the type may: a view, not a copy. */
export function viewElements(dtype: Dtype, bytes: Uint8Array): TensorData {
  const { buffer, byteOffset, length } = bytes;
  return new ARRAYS[dtype](buffer as ArrayBuffer, byteOffset, length / DTYPES[dtype].bytes);
}
