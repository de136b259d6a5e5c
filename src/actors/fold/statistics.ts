import { DTYPES, isHalf } from "../../protocol/dtypes.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import {
  type ComputedDtype,
  computedAs,
  ENCODED_CHUNK_BYTES,
  eachChunk,
  type Payload,
} from "./elements.ts";

/** Statistics of the elements of an update; all but `nonFinite` cover the finite elements only. */
export interface Statistics {
  /** L2 norm: the root of a float64 sum that is made in a fixed order. */
  readonly norm: number;
  /** The least element; undefined if none is finite. */
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly mean: number | undefined;
  /** How many are zero. */
  readonly zeros: number;
  /** How many are NaN or infinite. */
  readonly nonFinite: number;
}

const MEASURE = {
  float32: "measureF32",
  float64: "measureF64",
  int32: "measureI32",
  uint32: "measureU32",
  int64: "measureI64",
  uint64: "measureU64",
  bool: "measureU8",
  uint8: "measureU8",
  int8: "measureI8",
} as const satisfies Record<ComputedDtype, keyof Kernels>;

/** Numbers of a measurement: the sum of squares, and the five that the kernel `measured` returns. */
export const MEASURED = 6;

/** Measures the elements of a payload in one pass, in the scratch of the memory. */
export function measure(memory: ShardMemory, payload: Payload): Statistics {
  const results = new Float64Array(MEASURED);
  const count = measureInto(memory, payload, results, 0);
  return statisticsAt(results, 0, count);
}

/**
 * Measures the elements of a payload as {@link measure} does, and writes the {@link MEASURED} results from a place of an
 * array on; returns the number of elements.
 */
export function measureInto(
  memory: ShardMemory,
  payload: Payload,
  results: Float64Array,
  at: number,
): number {
  const { kernels } = memory;
  const kernel = kernels[MEASURE[computedAs(payload.dtype)]];
  const { measured } = kernels;
  const isPlain = payload.encoding === undefined && !isHalf(payload.dtype);
  if (isPlain && payload.bytes.length <= memory.scratchBytes) {
    const n = payload.bytes.length / DTYPES[payload.dtype].bytes;
    results[at] = kernel(memory.stage(payload.bytes), n);
    for (let i = 0; i < 5; i++) results[at + 1 + i] = measured(i);
    return n;
  }
  let count = 0;
  let squares = 0;
  let sum = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let zeros = 0;
  let nonFinite = 0;
  const visit = (n: number): void => {
    count += n;
    squares += kernel(memory.scratch, n);
    sum += measured(0);
    min = Math.min(min, measured(1));
    max = Math.max(max, measured(2));
    zeros += measured(3);
    nonFinite += measured(4);
  };
  eachChunk(memory, payload, visit, ENCODED_CHUNK_BYTES);
  results.set([squares, sum, min, max, zeros, nonFinite], at);
  return count;
}

/**
 * Measures like {@link measure}, but returns undefined where that throws: the fold must do the same with and without
 * an observer. Whoever describes the record measures it again and reports the error.
 */
export function measureIfPossible(memory: ShardMemory, payload: Payload): Statistics | undefined {
  try {
    return measure(memory, payload);
  } catch {
    return undefined;
  }
}

/** Returns the statistics of `count` elements from their {@link MEASURED} results, which begin at a place of an array. */
export function statisticsAt(results: Float64Array, at: number, count: number): Statistics {
  const [squares = 0, sum = 0, min = 0, max = 0, zeros = 0, nonFinite = 0] = results.subarray(
    at,
    at + MEASURED,
  );
  const norm = Math.sqrt(squares);
  const finite = count - nonFinite;
  if (finite === 0) {
    return { norm, min: undefined, max: undefined, mean: undefined, zeros, nonFinite };
  }
  // Adding 0 turns −0 into 0, so that the result does not depend on which of the two came first.
  return { norm, min: min + 0, max: max + 0, mean: sum / finite + 0, zeros, nonFinite };
}
