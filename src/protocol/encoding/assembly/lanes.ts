// How the elements beside the vectors, and their squares, are read.

/** The 16 bits at `from` as the first of eight lanes, the others 0. */
// @ts-ignore: decorator
@inline
export function loadHalf(from: usize): v128 {
  return i16x8.replace_lane(i64x2.splat(0), 0, load<u16>(from));
}

/** The squares of four float32, added in pairs in f64, where no square overflows. */
// @ts-ignore: decorator
@inline
export function squares(floats: v128): v128 {
  const low = f64x2.promote_low_f32x4(floats);
  const high = f64x2.promote_low_f32x4(i64x2.shuffle(floats, floats, 1, 1));
  return f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high));
}

/** Both lanes in one. */
// @ts-ignore: decorator
@inline
export function total(sums: v128): f64 {
  return f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
}
