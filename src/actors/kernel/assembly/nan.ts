/** `x` with every NaN lane replaced by the canonical quiet NaN, 0x7fc00000. */
// @ts-ignore: decorator
@inline
export function canonicalF32x4(x: v128): v128 {
  return v128.bitselect(x, i32x4.splat(0x7fc00000), f32x4.eq(x, x));
}

/** `x` with every NaN lane replaced by the canonical quiet NaN, 0x7ff8000000000000. */
// @ts-ignore: decorator
@inline
export function canonicalF64x2(x: v128): v128 {
  return v128.bitselect(x, i64x2.splat(0x7ff8000000000000), f64x2.eq(x, x));
}
