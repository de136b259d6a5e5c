import { isKnownFinite } from "../../protocol/checksum/known-finite.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { accumulate } from "../optimizer/gradient.ts";
import type { FloatDtype } from "../optimizer/update-rule.ts";
import { type ColumnTarget, eachColumn } from "./column-walk.ts";
import { everyEncodedChunk, type Payload } from "./payload.ts";

const MIX = {
  int32: "mixI32",
  uint32: "mixU32",
  int64: "mixI64",
  uint64: "mixU64",
  float32: "mixF32",
  float64: "mixF64",
} as const satisfies Record<Dtype, keyof Kernels>;

const FINITE = {
  float32: "finiteF32",
  float64: "finiteF64",
  bfloat16: "finiteBf16",
  float16: "finiteF16",
} as const satisfies Record<FloatDtype | Encoding, keyof Kernels>;
const CANONICAL = { float32: "canonicalF32", float64: "canonicalF64" } as const;

/** Whether elements of this type are floating point numbers. */
export function isFloat(dtype: Dtype): dtype is FloatDtype {
  return DTYPES[dtype].float;
}

/**
 * Whether no element of a payload is a NaN or an infinity; true for integers. The payload must be as it
 * was when the checksum of its record was compared: that pass has mostly seen the answer.
 */
export function allFinite(memory: ShardMemory, payload: Payload): boolean {
  const { dtype, encoding } = payload;
  if (!isFloat(dtype)) return true;
  if (isKnownFinite(payload.bytes, encoding ?? dtype)) return true;
  const finite = memory.kernels[FINITE[encoding ?? dtype]];
  return everyEncodedChunk(memory, payload, (pointer, n) => finite(pointer, n) === 1);
}

/** `values = alpha · values + beta · payload` in the target's one column. */
export function mix(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  alpha: number,
  beta: number,
): void {
  const kernel = memory.kernels[MIX[payload.dtype]];
  eachColumn(memory, target, payload, (columns, incoming, n) =>
    kernel(columns[0] as number, incoming, n, alpha, beta),
  );
}

/** `values = values + payload` in the target's one column; integers wrap around. */
export function add(memory: ShardMemory, target: ColumnTarget, payload: Payload): void {
  const { dtype } = payload;
  eachColumn(memory, target, payload, (columns, incoming, n) =>
    accumulate(memory.kernels, dtype, columns[0] as number, incoming, n),
  );
}

/**
 * `values = data` with canonical NaNs. The data must be as it was when the checksum of its record was
 * compared, as for {@link allFinite}.
 */
export function overwrite(
  memory: ShardMemory,
  dtype: Dtype,
  pointer: number,
  data: Uint8Array,
): void {
  memory.bytes(pointer, data.length).set(data);
  if (isFloat(dtype) && !isKnownFinite(data, dtype)) {
    memory.kernels[CANONICAL[dtype]](pointer, data.length / DTYPES[dtype].bytes);
  }
}
