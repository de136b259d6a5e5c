import { squares, total } from "./lanes";

// bfloat16 is the upper half of a float32: a sign, 8 bits of exponent, 7 of fraction.

/**
 * Four float32 rounded to the nearest bfloat16, ties to even, in the upper halves of the lanes; a NaN
 * becomes the canonical one. What is added to the half that goes is just under half a unit of the
 * half that stays, or exactly half if that is odd: the carry rounds, up to infinity.
 */
// @ts-ignore: decorator
@inline
function rounded(floats: v128): v128 {
  const odd = v128.and(i32x4.shr_u(floats, 16), i32x4.splat(1));
  const sum = i32x4.add(floats, i32x4.add(odd, i32x4.splat(0x7fff)));
  return v128.bitselect(sum, i32x4.splat(0x7fc00000), f32x4.eq(floats, floats));
}

/** The upper halves of eight lanes. */
// @ts-ignore: decorator
@inline
function upperHalves(low: v128, high: v128): v128 {
  return i16x8.shuffle(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
}

/** The float32 that four bfloat16 in the upper halves of the lanes are. */
// @ts-ignore: decorator
@inline
function values(floats: v128): v128 {
  return v128.and(floats, i32x4.splat(0xffff0000));
}

/** `n` float32 at `to` from as many bfloat16 at `from`: exact, a NaN keeps its bits. */
export function widenBf16(to: usize, from: usize, n: u32): void {
  for (; n >= 8; n -= 8) {
    const halves = v128.load(from);
    v128.store(to, i32x4.shl(i32x4.extend_low_i16x8_u(halves), 16));
    v128.store(to, i32x4.shl(i32x4.extend_high_i16x8_u(halves), 16), 16);
    to += 32;
    from += 16;
  }
  for (; n > 0; n--) {
    store<u32>(to, <u32>load<u16>(from) << 16);
    to += 4;
    from += 2;
  }
}

/** Narrows; the sum of the squares of what was encoded if `isSummed`, else 0. */
// @ts-ignore: decorator
@inline
function narrow(to: usize, from: usize, n: u32, isSummed: bool): f64 {
  let sums = f64x2.splat(0);
  let more = f64x2.splat(0);
  for (; n >= 8; n -= 8) {
    const low = rounded(v128.load(from));
    const high = rounded(v128.load(from, 16));
    v128.store(to, upperHalves(low, high));
    if (isSummed) {
      sums = f64x2.add(sums, squares(values(low)));
      more = f64x2.add(more, squares(values(high)));
    }
    to += 16;
    from += 32;
  }
  for (; n > 0; n--) {
    const single = rounded(v128.load32_zero(from));
    v128.store16_lane(to, single, 1);
    if (isSummed) sums = f64x2.add(sums, squares(values(single)));
    to += 2;
    from += 4;
  }
  return total(f64x2.add(sums, more));
}

/** `n` bfloat16 at `to` from as many float32 at `from`. */
export function narrowBf16(to: usize, from: usize, n: u32): void {
  narrow(to, from, n, false);
}

/** As narrowBf16, and the sum of the squares of the encoded values; NaN or infinite if one is. */
export function narrowSquaresBf16(to: usize, from: usize, n: u32): f64 {
  return narrow(to, from, n, true);
}
