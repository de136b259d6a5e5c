import { fillSpecial, INFINITE, isSpecial, specialScale } from "./groups";
import { largestF32 } from "./largest";

// e3m0: an element is 0 or a power of two from 2^-6 to 1, with a sign, times the scale of its group, which is the
// largest size in the group. A code has 4 bits: a sign, and a level from 0 for zero to 7 for 1. Two codes are a byte,
// the first in its lower half.

/** The code of a zero with a sign, which is not used. */
const NEGATIVE_ZERO: i8 = 8;
/** 2^-7, the least part of the scale that is not rounded to 0. */
const LEAST: i32 = 120 << 23;

/** The codes of four elements. */
// @ts-ignore: decorator
@inline
function codesOf(elements: v128, scale: v128): v128 {
  const size = v128.and(elements, i32x4.splat(0x7fffffff));
  const part = f32x4.div(size, scale);
  // Half a unit of the exponent, added to the bits, carries where the next power of two is as near or nearer.
  const exponent = i32x4.shr_u(i32x4.add(part, i32x4.splat(1 << 22)), 23);
  const isNotZero = i32x4.ge_s(part, i32x4.splat(LEAST));
  const level = i32x4.max_s(i32x4.sub(exponent, i32x4.splat(120)), i32x4.splat(1));
  const sign = v128.and(i32x4.shr_u(elements, 28), i32x4.splat(8));
  return v128.and(v128.or(level, sign), isNotZero);
}

/** Encodes a group; returns the bits of its scale. */
export function narrowE3m0Group(codes: usize, from: usize, n: u32): i32 {
  const largest = largestF32(from, n);
  if (largest == 0 || largest >= INFINITE) {
    memory.fill(codes, 0, (n + 1) >> 1);
    return largest == 0 ? 0 : specialScale(largest);
  }
  const scale = f32x4.splat(reinterpret<f32>(largest));
  for (; n >= 16; n -= 16) {
    const low = i16x8.narrow_i32x4_s(
      codesOf(v128.load(from), scale), codesOf(v128.load(from, 16), scale),
    );
    const high = i16x8.narrow_i32x4_s(
      codesOf(v128.load(from, 32), scale), codesOf(v128.load(from, 48), scale),
    );
    // A byte a code; then the two of each 16 bits in the lower byte of them.
    const bytes = i8x16.narrow_i16x8_u(low, high);
    const pairs = v128.and(v128.or(bytes, i16x8.shr_u(bytes, 4)), i16x8.splat(0xff));
    v128.store64_lane(codes, i8x16.narrow_i16x8_u(pairs, pairs), 0);
    codes += 8;
    from += 64;
  }
  for (; n > 0; n -= min<u32>(n, 2)) {
    const first = i32x4.extract_lane(codesOf(v128.load32_zero(from), scale), 0);
    let second: i32 = 0;
    if (n > 1) second = i32x4.extract_lane(codesOf(v128.load32_zero(from + 4), scale), 0);
    store<u8>(codes, first | (second << 4));
    codes += 1;
    from += 8;
  }
  return largest;
}

/** The float32 of eight codes, each in 16 bits, without their scale, by tables of the two upper bytes. */
// @ts-ignore: decorator
@inline
function upperHalves(codes: v128): v128 {
  // The power 2^(level - 7) has the exponent level + 120, whose lowest bit is in the second byte.
  const first = i8x16(
    0, 0x3c, 0x3d, 0x3d, 0x3e, 0x3e, 0x3f, 0x3f, 0, -0x44, -0x43, -0x43, -0x42, -0x42, -0x41, -0x41,
  );
  const second = i8x16(0, -0x80, 0, -0x80, 0, -0x80, 0, -0x80, 0, -0x80, 0, -0x80, 0, -0x80, 0, -0x80);
  const upper = i16x8.shl(i8x16.swizzle(first, codes), 8);
  return v128.or(upper, v128.and(i8x16.swizzle(second, codes), i16x8.splat(0xff)));
}

/** Decodes a group; whether a code is that of a negative zero, or a code without an element is not 0. */
export function widenE3m0Group(to: usize, codes: usize, scale: i32, n: u32): bool {
  const scales = f32x4.splat(reinterpret<f32>(scale));
  const first = to;
  const all = n;
  let negative = i16x8.splat(0);
  for (; n >= 8; n -= 8) {
    // Each byte of four in 16 bits, with its second code in the upper byte: eight codes, one a byte.
    const bytes = v128.load32_zero(codes);
    const pairs = i16x8.extend_low_i8x16_u(bytes);
    const each = v128.and(v128.or(pairs, i16x8.shl(pairs, 4)), i8x16.splat(15));
    const wide = i16x8.extend_low_i8x16_u(each);
    negative = v128.or(negative, i16x8.eq(wide, i16x8.splat(NEGATIVE_ZERO)));
    const halves = upperHalves(wide);
    v128.store(to, f32x4.mul(i32x4.shl(i32x4.extend_low_i16x8_u(halves), 16), scales));
    v128.store(to, f32x4.mul(i32x4.shl(i32x4.extend_high_i16x8_u(halves), 16), scales), 16);
    codes += 4;
    to += 32;
  }
  let isWrong = v128.any_true(negative);
  for (let i: u32 = 0; i < n; i++) {
    const pair = <i32>load<u8>(codes + <usize>(i >> 1));
    const code = i & 1 ? pair >> 4 : pair & 15;
    isWrong = isWrong || code == NEGATIVE_ZERO;
    const wide = i16x8.replace_lane(i16x8.splat(0), 0, <i16>code);
    const half = i32x4.shl(i32x4.extend_low_i16x8_u(upperHalves(wide)), 16);
    v128.store32_lane(to, f32x4.mul(half, scales), 0);
    to += 4;
  }
  if (n & 1) isWrong = isWrong || load<u8>(codes + <usize>(n >> 1)) >> 4 != 0;
  if (isSpecial(scale)) fillSpecial(first, scale, all);
  return isWrong;
}
