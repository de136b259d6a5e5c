/**
 * What the encodings of 16 bits are to give, found without touching bits: the value of a pattern by the definition
 * of the format, and the pattern of a value by searching all of them for the nearest. All values and
 * differences here are exact in float64.
 */
import type { HalfEncoding } from "../../../src/protocol/dtypes.ts";

/** A binary format of 16 bits. */
interface Format {
  readonly fractionBits: number;
  readonly exponentBias: number;
  /** The pattern of infinity; greater ones are NaN. */
  readonly infinity: number;
  readonly nan: number;
}

export const FORMATS: Readonly<Record<HalfEncoding, Format>> = {
  bfloat16: { fractionBits: 7, exponentBias: 127, infinity: 0x7f80, nan: 0x7fc0 },
  float16: { fractionBits: 10, exponentBias: 15, infinity: 0x7c00, nan: 0x7e00 },
};

const SIGN = 0x8000;

/** What a pattern would be worth if infinity were the next number, as it is for rounding. */
function sizeOf({ fractionBits, exponentBias }: Format, pattern: number): number {
  const scale = 2 ** fractionBits;
  const exponent = Math.floor(pattern / scale);
  const fraction = (pattern % scale) / scale;
  return exponent === 0
    ? fraction * 2 ** (1 - exponentBias)
    : (1 + fraction) * 2 ** (exponent - exponentBias);
}

const SIZES: Readonly<Record<HalfEncoding, readonly number[]>> = {
  bfloat16: Array.from({ length: 0x7f81 }, (_, pattern) => sizeOf(FORMATS.bfloat16, pattern)),
  float16: Array.from({ length: 0x7c01 }, (_, pattern) => sizeOf(FORMATS.float16, pattern)),
};

/** The sizes of all patterns from 0 up to infinity, which stands for the next power of two. */
export function ascendingSizes(encoding: HalfEncoding): readonly number[] {
  return SIZES[encoding];
}

/** The value of a pattern. */
export function numberOf(encoding: HalfEncoding, pattern: number): number {
  const { infinity } = FORMATS[encoding];
  const unsigned = pattern % SIGN;
  if (unsigned > infinity) return Number.NaN;
  const size = unsigned === infinity ? Number.POSITIVE_INFINITY : (SIZES[encoding][unsigned] ?? 0);
  return pattern >= SIGN ? -size : size;
}

/** The pattern nearest to a value, of two that are as near the even one; the canonical NaN. */
function patternOf(encoding: HalfEncoding, value: number): number {
  const { infinity, nan } = FORMATS[encoding];
  if (Number.isNaN(value)) return nan;
  const sign = value < 0 || Object.is(value, -0) ? SIGN : 0;
  const sizes = SIZES[encoding];
  const size = Math.abs(value);
  let below = 0;
  let above = infinity;
  if (size >= (sizes[above] ?? 0)) return sign + infinity;
  while (above - below > 1) {
    const middle = Math.floor((below + above) / 2);
    if ((sizes[middle] ?? 0) <= size) below = middle;
    else above = middle;
  }
  const fromBelow = size - (sizes[below] ?? 0);
  const fromAbove = (sizes[above] ?? 0) - size;
  if (fromBelow === fromAbove) return sign + (below % 2 === 0 ? below : above);
  return sign + (fromBelow < fromAbove ? below : above);
}

/** The patterns nearest to all of `values`. */
export function patternsOf(encoding: HalfEncoding, values: Float32Array): Uint16Array {
  return Uint16Array.from(values, (value) => patternOf(encoding, value));
}
