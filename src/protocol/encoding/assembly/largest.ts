// A float without its sign, read as an integer, is ordered as it is as a float, and NaNs are above
// infinity. So one pass that keeps the largest tells whether all are below a bound, and it costs the
// same whatever the values are.

/** The largest of four lanes. */
// @ts-ignore: decorator
@inline
function largestLane(lanes: v128): i32 {
  const pairs = i32x4.max_s(lanes, i32x4.shuffle(lanes, lanes, 2, 3, 0, 1));
  return i32x4.extract_lane(i32x4.max_s(pairs, i32x4.shuffle(pairs, pairs, 1, 0, 3, 2)), 0);
}

/** The largest word of `n` vectors under `mask`, which leaves no sign. */
// @ts-ignore: decorator
@inline
export function largestWord(pointer: usize, n: u32, mask: v128): i32 {
  let first = i32x4.splat(0);
  let second = i32x4.splat(0);
  for (; n >= 2; n -= 2) {
    first = i32x4.max_s(first, v128.and(v128.load(pointer), mask));
    second = i32x4.max_s(second, v128.and(v128.load(pointer, 16), mask));
    pointer += 32;
  }
  if (n > 0) first = i32x4.max_s(first, v128.and(v128.load(pointer), mask));
  return largestLane(i32x4.max_s(first, second));
}

/** The largest of `n` float32 without their signs, as its bits; 0 of none. */
export function largestF32(pointer: usize, n: u32): i32 {
  let largest = largestWord(pointer, n >> 2, i32x4.splat(0x7fffffff));
  pointer += (<usize>n & ~3) << 2;
  for (n &= 3; n > 0; n--) {
    largest = max<i32>(largest, load<i32>(pointer) & 0x7fffffff);
    pointer += 4;
  }
  return largest;
}

/** The largest of `n` bfloat16 or float16 without their signs, as its bits; 0 of none. */
export function largestHalf(pointer: usize, n: u32): i32 {
  const mask = i16x8.splat(0x7fff);
  let first = i16x8.splat(0);
  let second = i16x8.splat(0);
  for (; n >= 16; n -= 16) {
    first = i16x8.max_s(first, v128.and(v128.load(pointer), mask));
    second = i16x8.max_s(second, v128.and(v128.load(pointer, 16), mask));
    pointer += 32;
  }
  const halves = i16x8.max_s(first, second);
  const words = i32x4.max_s(
    i32x4.extend_low_i16x8_s(halves),
    i32x4.extend_high_i16x8_s(halves),
  );
  let largest = largestLane(words);
  for (; n > 0; n--) {
    largest = max<i32>(largest, load<u16>(pointer) & 0x7fff);
    pointer += 2;
  }
  return largest;
}
