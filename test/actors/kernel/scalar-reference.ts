/**
 * What the kernels are to compute, one element at a time in plain TypeScript. `Math.fround` of an
 * f64 sum or product of two f32 is the f32 operation: 53 bits are enough that rounding twice gives
 * what rounding once does.
 */

const { fround } = Math;

export function mixedF32(value: number, piece: number, alpha: number, beta: number): number {
  return fround(fround(fround(alpha) * value) + fround(fround(beta) * piece));
}

export function mixedF64(value: number, piece: number, alpha: number, beta: number): number {
  return alpha * value + beta * piece;
}

/** The range of an integer type. */
export interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

export function mixedInteger(
  value: bigint,
  piece: bigint,
  alpha: number,
  beta: number,
  { min, max }: IntegerRange,
): bigint {
  const exact = alpha * Number(value) + beta * Number(piece);
  if (Number.isNaN(exact)) return 0n;
  if (exact >= Number(max)) return max;
  if (exact <= Number(min)) return min;
  return BigInt(Math.trunc(exact));
}

/** A `Float32Array` of `results` whose NaNs are all 0x7fc00000. */
export function canonicalF32(results: Iterable<number>): Float32Array {
  const floats = Float32Array.from(results);
  const bits = new Uint32Array(floats.buffer);
  for (const [at, value] of floats.entries()) if (Number.isNaN(value)) bits[at] = 0x7fc00000;
  return floats;
}

/** A `Float64Array` of `results` whose NaNs are all 0x7ff8000000000000. */
export function canonicalF64(results: Iterable<number>): Float64Array {
  const floats = Float64Array.from(results);
  const bits = new BigUint64Array(floats.buffer);
  for (const [at, value] of floats.entries()) {
    if (Number.isNaN(value)) bits[at] = 0x7ff8000000000000n;
  }
  return floats;
}
