import { fillSpecial, INFINITE, isSpecial, specialScale } from "./groups";
import { largestF32 } from "./largest";

// int8: an element is a whole number from -127 to 127 times the scale of its group, which is the largest size in the
// group divided by 127.

/** The scale of elements whose largest size has these bits. The largest code times it must not overflow. */
// @ts-ignore: decorator
@inline
function scaleOf(largest: i32): f32 {
  const scale = reinterpret<f32>(largest) / <f32>127;
  return scale * <f32>127 < <f32>Infinity ? scale : reinterpret<f32>(reinterpret<i32>(scale) - 1);
}

/** 1.5 * 2^23: in a sum with it, float32 has no place for a fraction, and rounds it to nearest even. */
const WHOLE: f32 = 12582912;
const WHOLE_BITS: i32 = 0x4b400000;

/** The codes of four elements. Their quotients are below 2^8, so that the lower bits of the sum are the code. */
// @ts-ignore: decorator
@inline
function codesOf(elements: v128, scale: v128): v128 {
  const sum = f32x4.add(f32x4.div(elements, scale), f32x4.splat(WHOLE));
  const near = i32x4.sub(sum, i32x4.splat(WHOLE_BITS));
  return i32x4.max_s(i32x4.min_s(near, i32x4.splat(127)), i32x4.splat(-127));
}

/** Encodes a group; returns the bits of its scale. */
export function narrowInt8Group(codes: usize, from: usize, n: u32): i32 {
  const largest = largestF32(from, n);
  const scale = largest < INFINITE ? scaleOf(largest) : <f32>0;
  if (scale == 0) {
    memory.fill(codes, 0, n);
    return largest < INFINITE ? 0 : specialScale(largest);
  }
  const scales = f32x4.splat(scale);
  for (; n >= 16; n -= 16) {
    const low = i16x8.narrow_i32x4_s(
      codesOf(v128.load(from), scales), codesOf(v128.load(from, 16), scales),
    );
    const high = i16x8.narrow_i32x4_s(
      codesOf(v128.load(from, 32), scales), codesOf(v128.load(from, 48), scales),
    );
    v128.store(codes, i8x16.narrow_i16x8_s(low, high));
    codes += 16;
    from += 64;
  }
  for (; n > 0; n--) {
    v128.store8_lane(codes, codesOf(v128.load32_zero(from), scales), 0);
    codes += 1;
    from += 4;
  }
  return reinterpret<i32>(scale);
}

/** Decodes a group; whether a code is -128, which stands for nothing. */
export function widenInt8Group(to: usize, codes: usize, scale: i32, n: u32): bool {
  const scales = f32x4.splat(reinterpret<f32>(scale));
  let least = i16x8.splat(0);
  let leastOfRest: i32 = 0;
  const first = to;
  const all = n;
  for (; n >= 8; n -= 8) {
    const wide = v128.load8x8_s(codes);
    least = i16x8.min_s(least, wide);
    v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(wide)), scales));
    v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(wide)), scales), 16);
    codes += 8;
    to += 32;
  }
  for (; n > 0; n--) {
    const code = <i32>load<i8>(codes);
    leastOfRest = min<i32>(leastOfRest, code);
    store<f32>(to, <f32>code * reinterpret<f32>(scale));
    codes += 1;
    to += 4;
  }
  if (isSpecial(scale)) fillSpecial(first, scale, all);
  return v128.any_true(i16x8.eq(least, i16x8.splat(-128))) || leastOfRest == -128;
}
