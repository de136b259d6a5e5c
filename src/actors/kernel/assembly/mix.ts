import { canonicalF32x4, canonicalF64x2 } from "./nan";

// @ts-ignore: decorator
@inline
function mixedF32(value: v128, piece: v128, alpha: v128, beta: v128): v128 {
  return canonicalF32x4(f32x4.add(f32x4.mul(alpha, value), f32x4.mul(beta, piece)));
}

// @ts-ignore: decorator
@inline
function mixedF64(value: v128, piece: v128, alpha: v128, beta: v128): v128 {
  return f64x2.add(f64x2.mul(alpha, value), f64x2.mul(beta, piece));
}

/** value = f32(alpha) * value + f32(beta) * piece */
export function mixF32(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  const a = f32x4.splat(<f32>alpha);
  const b = f32x4.splat(<f32>beta);
  for (; n >= 4; n -= 4) {
    v128.store(value, mixedF32(v128.load(value), v128.load(piece), a, b));
    value += 16;
    piece += 16;
  }
  for (; n > 0; n--) {
    const result = mixedF32(v128.load32_zero(value), v128.load32_zero(piece), a, b);
    v128.store32_lane(value, result, 0);
    value += 4;
    piece += 4;
  }
}

/** value = alpha * value + beta * piece */
export function mixF64(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  const a = f64x2.splat(alpha);
  const b = f64x2.splat(beta);
  for (; n >= 2; n -= 2) {
    v128.store(value, canonicalF64x2(mixedF64(v128.load(value), v128.load(piece), a, b)));
    value += 16;
    piece += 16;
  }
  if (n > 0) {
    const result = mixedF64(v128.load64_zero(value), v128.load64_zero(piece), a, b);
    v128.store64_lane(value, canonicalF64x2(result), 0);
  }
}

// Integers: computed in f64, cut toward zero, held at the ends of the type's range; a NaN is 0.
// 32-bit types go two lanes at a time, because two f64 fill a vector. SIMD has no 64-bit
// conversions, so 64-bit types go one by one; so do those of 8 bits, of which few are mixed.

export function mixI32(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  const a = f64x2.splat(alpha);
  const b = f64x2.splat(beta);
  for (; n >= 2; n -= 2) {
    const x = f64x2.convert_low_i32x4_s(v128.load64_zero(value));
    const y = f64x2.convert_low_i32x4_s(v128.load64_zero(piece));
    v128.store64_lane(value, i32x4.trunc_sat_f64x2_s_zero(mixedF64(x, y, a, b)), 0);
    value += 8;
    piece += 8;
  }
  if (n > 0) {
    const x = f64x2.convert_low_i32x4_s(v128.load32_zero(value));
    const y = f64x2.convert_low_i32x4_s(v128.load32_zero(piece));
    v128.store32_lane(value, i32x4.trunc_sat_f64x2_s_zero(mixedF64(x, y, a, b)), 0);
  }
}

export function mixU32(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  const a = f64x2.splat(alpha);
  const b = f64x2.splat(beta);
  for (; n >= 2; n -= 2) {
    const x = f64x2.convert_low_i32x4_u(v128.load64_zero(value));
    const y = f64x2.convert_low_i32x4_u(v128.load64_zero(piece));
    v128.store64_lane(value, i32x4.trunc_sat_f64x2_u_zero(mixedF64(x, y, a, b)), 0);
    value += 8;
    piece += 8;
  }
  if (n > 0) {
    const x = f64x2.convert_low_i32x4_u(v128.load32_zero(value));
    const y = f64x2.convert_low_i32x4_u(v128.load32_zero(piece));
    v128.store32_lane(value, i32x4.trunc_sat_f64x2_u_zero(mixedF64(x, y, a, b)), 0);
  }
}

export function mixI64(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  for (; n > 0; n--) {
    store<i64>(value, <i64>(alpha * <f64>load<i64>(value) + beta * <f64>load<i64>(piece)));
    value += 8;
    piece += 8;
  }
}

export function mixU64(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  for (; n > 0; n--) {
    store<u64>(value, <u64>(alpha * <f64>load<u64>(value) + beta * <f64>load<u64>(piece)));
    value += 8;
    piece += 8;
  }
}

/** An element of 8 bits: cut toward zero, held between two ends. */
// @ts-ignore: decorator
@inline
function held(mixed: f64, least: i32, most: i32): i32 {
  return min<i32>(max<i32>(<i32>mixed, least), most);
}

export function mixI8(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  for (; n > 0; n--) {
    const mixed = alpha * <f64>load<i8>(value) + beta * <f64>load<i8>(piece);
    store<i8>(value, held(mixed, i8.MIN_VALUE, i8.MAX_VALUE));
    value += 1;
    piece += 1;
  }
}

export function mixU8(value: usize, piece: usize, n: u32, alpha: f64, beta: f64): void {
  for (; n > 0; n--) {
    const mixed = alpha * <f64>load<u8>(value) + beta * <f64>load<u8>(piece);
    store<u8>(value, held(mixed, 0, u8.MAX_VALUE));
    value += 1;
    piece += 1;
  }
}
