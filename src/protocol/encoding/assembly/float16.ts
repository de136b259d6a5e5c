import { loadHalf, squares, total } from "./lanes";

// float16 is IEEE 754's binary16: a sign, 5 bits of exponent, 10 of fraction. Its exponents are 112
// below those of float32. Multiplication of denormals is avoided: many processors take a hundred
// cycles for it, and most small gradients are denormal in float16.

/** 65520, from which on a size rounds to infinity, and 2^16, whose float16 is infinity. */
const OVERFLOW: i32 = 0x477ff000;
const HELD: i32 = 143 << 23;
/** The exponent of 2^-14, the least without denormals. */
const LEAST: i32 = 113 << 23;
/** Elements after which one that rounds to infinity, or is NaN, is looked for. */
const RUN: u32 = 1024;

/** Four float32 from float16 that were extended with their signs: exact, a NaN keeps its fraction. */
// @ts-ignore: decorator
@inline
function widened(halves: v128): v128 {
  const shifted = v128.and(i32x4.shl(halves, 13), i32x4.splat(0x0fffe000));
  const rebased = i32x4.add(shifted, i32x4.splat(112 << 23));
  // A denormal has no leading one: given one, and the exponent for it, it is 2^-14 too large.
  const denormal = i32x4.lt_s(shifted, i32x4.splat(1 << 23));
  const leading = i32x4.add(rebased, v128.and(denormal, i32x4.splat(1 << 23)));
  const finite = f32x4.sub(leading, v128.and(denormal, i32x4.splat(LEAST)));
  // The exponent 31 of infinity and NaN becomes 255.
  const special = i32x4.gt_s(shifted, i32x4.splat((31 << 23) - 1));
  const size = v128.or(finite, v128.and(special, i32x4.splat(0x7f800000)));
  return v128.or(size, v128.and(halves, i32x4.splat(0x80000000)));
}

/** The sizes of four float32. */
// @ts-ignore: decorator
@inline
function sizes(floats: v128): v128 {
  return v128.and(floats, i32x4.splat(0x7fffffff));
}

/**
 * What to add to a size so that float32 rounds the sum to nearest even where float16 does: the power
 * of two 13 above the size's own or above the least, as a float32 has 13 bits of fraction more.
 */
// @ts-ignore: decorator
@inline
function roundingBias(size: v128): v128 {
  const power = i32x4.max_s(v128.and(size, i32x4.splat(0x7f800000)), i32x4.splat(LEAST));
  return i32x4.add(power, i32x4.splat(13 << 23));
}

/** The float16 of four sums of size and bias, without signs, in the low halves of the lanes. */
// @ts-ignore: decorator
@inline
function narrowedSize(sum: v128, bias: v128): v128 {
  // The sum's fraction is the float16's with its leading one, which counts as one of the exponent.
  const exponent = i32x4.shr_u(i32x4.sub(bias, i32x4.splat(LEAST + (13 << 23))), 13);
  return i32x4.add(i32x4.sub(sum, bias), exponent);
}

/** Eight float16, of their sizes in 32 bits and of the float32 that have their signs. */
// @ts-ignore: decorator
@inline
function packed(lowSize: v128, highSize: v128, low: v128, high: v128): v128 {
  const upper = i16x8.narrow_i32x4_s(i32x4.shr_s(low, 16), i32x4.shr_s(high, 16));
  const sign = v128.and(upper, i16x8.splat(-0x8000));
  return v128.or(i16x8.narrow_i32x4_u(lowSize, highSize), sign);
}

/** `n` float32 at `to` from as many float16 at `from`. */
export function widenF16(to: usize, from: usize, n: u32): void {
  for (; n >= 8; n -= 8) {
    const halves = v128.load(from);
    v128.store(to, widened(i32x4.extend_low_i16x8_s(halves)));
    v128.store(to, widened(i32x4.extend_high_i16x8_s(halves)), 16);
    to += 32;
    from += 16;
  }
  for (; n > 0; n--) {
    v128.store32_lane(to, widened(i32x4.extend_low_i16x8_s(loadHalf(from))), 0);
    to += 4;
    from += 2;
  }
}

/**
 * Narrows one by one, whatever the elements are. The sum of the squares of what was encoded, infinite
 * if one is infinite or NaN.
 */
function narrowEach(to: usize, from: usize, n: u32): f64 {
  let sum: f64 = 0;
  for (; n > 0; n--) {
    const floats = v128.load32_zero(from);
    const size = sizes(floats);
    const held = i32x4.min_s(size, i32x4.splat(HELD));
    const bias = roundingBias(held);
    const biased = f32x4.add(held, bias);
    const narrowed = narrowedSize(biased, bias);
    const half = packed(narrowed, narrowed, floats, floats);
    const isNumber = f32x4.eq(floats, floats);
    v128.store16_lane(to, v128.bitselect(half, i16x8.splat(0x7e00), isNumber), 0);
    const value = <f64>f32x4.extract_lane(f32x4.sub(biased, bias), 0);
    sum += i32x4.extract_lane(size, 0) < OVERFLOW ? value * value : Infinity;
    to += 2;
    from += 4;
  }
  return sum;
}

/** As narrowEach, for a whole number of eights; the sum is any number unless `isSummed`. */
// @ts-ignore: decorator
@inline
function narrowRun(to: usize, from: usize, n: u32, isSummed: bool): f64 {
  let sums = f64x2.splat(0);
  let largest = i32x4.splat(0);
  let at: u32 = 0;
  // One block without an exit in its middle: V8 then keeps the constants in registers.
  do {
    const low = v128.load(from + (at << 2));
    const high = v128.load(from + (at << 2), 16);
    const lowSize = sizes(low);
    const highSize = sizes(high);
    largest = i32x4.max_s(largest, i32x4.max_s(lowSize, highSize));
    const lowBias = roundingBias(lowSize);
    const highBias = roundingBias(highSize);
    const lowSum = f32x4.add(lowSize, lowBias);
    const highSum = f32x4.add(highSize, highBias);
    const narrowedLow = narrowedSize(lowSum, lowBias);
    const narrowedHigh = narrowedSize(highSum, highBias);
    v128.store(to + (at << 1), packed(narrowedLow, narrowedHigh, low, high));
    if (isSummed) {
      sums = f64x2.add(sums, squares(f32x4.sub(lowSum, lowBias)));
      sums = f64x2.add(sums, squares(f32x4.sub(highSum, highBias)));
    }
    at += 8;
  } while (at < n);
  const isSpecial = v128.any_true(i32x4.ge_s(largest, i32x4.splat(OVERFLOW)));
  return isSpecial ? narrowEach(to, from, n) : total(sums);
}

/** As narrowEach; the sum is any number unless `isSummed`. */
// @ts-ignore: decorator
@inline
function narrow(to: usize, from: usize, n: u32, isSummed: bool): f64 {
  let sum: f64 = 0;
  while (n >= 8) {
    const run = min<u32>(n, RUN) & ~7;
    sum += narrowRun(to, from, run, isSummed);
    to += run << 1;
    from += run << 2;
    n -= run;
  }
  return sum + narrowEach(to, from, n);
}

/** `n` float16 at `to` from as many float32 at `from`. */
export function narrowF16(to: usize, from: usize, n: u32): void {
  narrow(to, from, n, false);
}

/** As narrowF16, and the sum of narrowEach. */
export function narrowSquaresF16(to: usize, from: usize, n: u32): f64 {
  return narrow(to, from, n, true);
}
