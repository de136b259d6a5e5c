import type { Metadata as TypeOfDataset } from "h5wasm";
import {
  allocateData,
  DTYPES,
  type Dtype,
  isDtype,
  type TensorData,
} from "../../protocol/dtypes.ts";

/** Classes of types in HDF5. */
const INTEGER = 0;
const FLOAT = 1;

/** h5wasm's names of our element types, all little-endian. */
export const HDF5_TYPES: Readonly<Record<Dtype, string>> = {
  int32: "<i",
  uint32: "<I",
  int64: "<q",
  uint64: "<Q",
  float32: "<f",
  float64: "<d",
};

/** The element type for a dataset of either byte order; undefined if no parameter can have it. */
export function dtypeOfDataset({ type, size, signed, vlen }: TypeOfDataset): Dtype | undefined {
  if (vlen) return undefined;
  const bits = size * 8;
  if (type === FLOAT) return named(`float${bits}`);
  return type === INTEGER ? named(`${signed ? "int" : "uint"}${bits}`) : undefined;
}

/** Copies little-endian bytes into elements. */
export function elementsOfBytes(dtype: Dtype, bytes: Uint8Array): TensorData {
  const data = allocateData(dtype, bytes.byteLength / DTYPES[dtype].bytes);
  new Uint8Array(data.buffer).set(bytes);
  return data;
}

function named(name: string): Dtype | undefined {
  return isDtype(name) ? name : undefined;
}
