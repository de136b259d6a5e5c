import { canonicalF32x4, canonicalF64x2 } from "./nan";

// A float is finite when its exponent bits are not all ones, that is when the float without its
// sign, read as an integer, is below infinity read so. For float64 the high word decides alone.
// So one pass that keeps the largest such word tells whether all elements are finite, and it costs
// the same whatever the values are.

/** The largest of four lanes. */
// @ts-ignore: decorator
@inline
function largestI32(lanes: v128): i32 {
  const pairs = i32x4.max_s(lanes, i32x4.shuffle(lanes, lanes, 2, 3, 0, 1));
  return i32x4.extract_lane(i32x4.max_s(pairs, i32x4.shuffle(pairs, pairs, 1, 0, 3, 2)), 0);
}

/** The largest word of `n` vectors under `mask`. */
// @ts-ignore: decorator
@inline
function largestWord(pointer: usize, n: u32, mask: v128): i32 {
  let first = i32x4.splat(0);
  let second = i32x4.splat(0);
  for (; n >= 2; n -= 2) {
    first = i32x4.max_s(first, v128.and(v128.load(pointer), mask));
    second = i32x4.max_s(second, v128.and(v128.load(pointer, 16), mask));
    pointer += 32;
  }
  if (n > 0) first = i32x4.max_s(first, v128.and(v128.load(pointer), mask));
  return largestI32(i32x4.max_s(first, second));
}

/** 1 if all elements are finite, else 0. */
export function finiteF32(pointer: usize, n: u32): i32 {
  let largest = largestWord(pointer, n >> 2, i32x4.splat(0x7fffffff));
  pointer += (<usize>n & ~3) << 2;
  for (n &= 3; n > 0; n--) {
    largest = max<i32>(largest, load<i32>(pointer) & 0x7fffffff);
    pointer += 4;
  }
  return i32(largest < 0x7f800000);
}

/** 1 if all elements are finite, else 0. */
export function finiteF64(pointer: usize, n: u32): i32 {
  let largest = largestWord(pointer, n >> 1, i64x2.splat(0x7fffffff00000000));
  if (n & 1) {
    largest = max<i32>(largest, load<i32>(pointer + ((<usize>n - 1) << 3), 4) & 0x7fffffff);
  }
  return i32(largest < 0x7ff00000);
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
