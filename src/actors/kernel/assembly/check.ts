import { largestF32, largestHalf, largestWord } from "../../../protocol/encoding/assembly/largest";
import { canonicalF32x4, canonicalF64x2 } from "./nan";

// A float is finite when it is below infinity but for its sign. For float64 the high word decides
// alone.

/** 1 if all elements are finite, else 0. */
export function finiteF32(pointer: usize, n: u32): i32 {
  return i32(largestF32(pointer, n) < 0x7f800000);
}

/** 1 if all elements are finite, else 0. */
export function finiteF64(pointer: usize, n: u32): i32 {
  let largest = largestWord(pointer, n >> 1, i64x2.splat(0x7fffffff00000000));
  if (n & 1) {
    largest = max<i32>(largest, load<i32>(pointer + ((<usize>n - 1) << 3), 4) & 0x7fffffff);
  }
  return i32(largest < 0x7ff00000);
}

/** 1 if all bfloat16 are finite, else 0. */
export function finiteBf16(pointer: usize, n: u32): i32 {
  return i32(largestHalf(pointer, n) < 0x7f80);
}

/** 1 if all float16 are finite, else 0. */
export function finiteF16(pointer: usize, n: u32): i32 {
  return i32(largestHalf(pointer, n) < 0x7c00);
}

/** Every NaN becomes the canonical quiet NaN; all else keeps its bits. */
export function canonicalF32(pointer: usize, n: u32): void {
  for (; n >= 4; n -= 4) {
    v128.store(pointer, canonicalF32x4(v128.load(pointer)));
    pointer += 16;
  }
  for (; n > 0; n--) {
    v128.store32_lane(pointer, canonicalF32x4(v128.load32_zero(pointer)), 0);
    pointer += 4;
  }
}

/** Every NaN becomes the canonical quiet NaN; all else keeps its bits. */
export function canonicalF64(pointer: usize, n: u32): void {
  for (; n >= 2; n -= 2) {
    v128.store(pointer, canonicalF64x2(v128.load(pointer)));
    pointer += 16;
  }
  if (n > 0) v128.store64_lane(pointer, canonicalF64x2(v128.load64_zero(pointer)), 0);
}

/** 1 if all bytes are 0 or 1, else 0. */
export function areBools(pointer: usize, n: u32): i32 {
  let bits = i32x4.splat(0);
  for (; n >= 16; n -= 16) {
    bits = v128.or(bits, v128.load(pointer));
    pointer += 16;
  }
  let rest: u32 = 0;
  for (; n > 0; n--) {
    rest |= load<u8>(pointer);
    pointer += 1;
  }
  const others = v128.any_true(v128.and(bits, i8x16.splat(<i8>0xfe)));
  return i32(!others && rest <= 1);
}
