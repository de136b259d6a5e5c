import { canonicalF32, canonicalF64 } from "./check";

// What the kernels of float32 and float64 share: `T` is f32 or f64, a vector has 4 or 2 lanes.

/** Elements of one vector. */
// @ts-ignore: decorator
@inline
export function lanes<T>(): u32 {
  return 16 / <u32>sizeof<T>();
}

/** How many of `n` elements fill whole vectors. */
// @ts-ignore: decorator
@inline
export function whole<T>(n: u32): u32 {
  return n & (0 - lanes<T>());
}

/** Answers of type parameters that choose what is compiled. */
export type Yes = i32;
export type No = f32;

/** Whether a type parameter is {@link Yes}. */
// @ts-ignore: decorator
@inline
export function is<Answer>(): bool {
  return isInteger<Answer>();
}

// The rest that does not fill a vector is copied into pads, where the kernel runs once more on one
// vector of each operand, and back: its arithmetic exists once, and no lane is treated apart.

const PADS = memory.data(16 * 8, 16);

/** The pad number `i`. */
// @ts-ignore: decorator
@inline
export function pad(i: u32): usize {
  return PADS + (<usize>i << 4);
}

/** Copies less than 16 bytes, 4 at a time. */
function copyWords(to: usize, from: usize, bytes: u32): void {
  for (; bytes > 0; bytes -= 4) {
    store<i32>(to, load<i32>(from));
    to += 4;
    from += 4;
  }
}

/** Copies the elements from `whole(n)` to `n` into pad `i`, zeros behind them; gives the pad. */
export function padded<T>(i: u32, range: usize, n: u32): usize {
  const filled = whole<T>(n);
  v128.store(pad(i), i32x4.splat(0));
  copyWords(pad(i), range + <usize>filled * sizeof<T>(), (n - filled) * <u32>sizeof<T>());
  return pad(i);
}

/** Copies back what {@link padded} copied. */
export function unpad<T>(i: u32, range: usize, n: u32): void {
  const filled = whole<T>(n);
  copyWords(range + <usize>filled * sizeof<T>(), pad(i), (n - filled) * <u32>sizeof<T>());
}

// V8 does not lift what a loop leaves alone out of it: a coefficient would be rounded and spread in
// every turn (Adam ran at 0.36 ms instead of 0.19 ms a MiB). A load is not moved. So coefficients
// go through memory, written and read within one call.

const PINS = memory.data(16 * 16, 16);

/** Writes down `x` as value `i` of the kernel at work. */
// @ts-ignore: decorator
@inline
export function pin(i: u32, x: v128): void {
  v128.store(PINS + (<usize>i << 4), x);
}

/** What {@link pin} wrote down, held outside loops. */
// @ts-ignore: decorator
@inline
export function pinned(i: u32): v128 {
  return v128.load(PINS + (<usize>i << 4));
}

// Denormals. A multiplication, division or root with a denormal operand or result costs two to ten
// times as much, on some processors over a hundred cycles; sums and comparisons cost nothing extra.
// WebAssembly has no switch against it. So what is too small for a normal product is replaced by +0
// beforehand, by comparing its bits as integers: as fast for denormals, and decided alike everywhere.

/** The smallest normal number. */
// @ts-ignore: decorator
@inline
export function smallest<T>(): f64 {
  return sizeof<T>() == 4 ? 1.1754943508222875e-38 : 2.2250738585072014e-308;
}

/** The bits that {@link kept} compares with to keep magnitudes from `least` on. */
// @ts-ignore: decorator
@inline
export function floorAt<T>(least: f64): v128 {
  return sizeof<T>() == 4
    ? i32x4.splat(reinterpret<i32>(<f32>least) - 1)
    : i64x2.splat(reinterpret<i64>(least) - 1);
}

/**
 * The floor of operands that are multiplied by `scale`: the product and the operand are normal and
 * the operand is at least `least`. A factor of 0 keeps nothing, neither infinity nor NaN.
 */
export function floorOf<T>(scale: f64, least: f64): v128 {
  const size = abs(scale);
  if (size < smallest<T>()) {
    return sizeof<T>() == 4 ? i32x4.splat(i32.MAX_VALUE) : i64x2.splat(i64.MAX_VALUE);
  }
  return floorAt<T>(max(max(smallest<T>(), least), smallest<T>() / size));
}

/** The smallest magnitude whose square times `share` is normal. */
// @ts-ignore: decorator
@inline
export function leastSquared<T>(share: f64): f64 {
  return sqrt(smallest<T>() / share);
}

/** `x` in all lanes, 0 if it is denormal. */
export function factor<T>(x: f64): v128 {
  return v128.splat<T>(abs(x) < smallest<T>() ? <T>0 : <T>x);
}

/** All bits of a float but its sign. */
// @ts-ignore: decorator
@inline
export function magnitudeMask<T>(): v128 {
  return sizeof<T>() == 4 ? i32x4.splat(i32.MAX_VALUE) : i64x2.splat(i64.MAX_VALUE);
}

/** `x` where its magnitude reaches the floor or it is NaN, +0 elsewhere. */
// @ts-ignore: decorator
@inline
export function kept<T>(x: v128, floor: v128, mask: v128): v128 {
  return v128.and(x, above<T>(v128.and(x, mask), floor));
}

/** As {@link kept}, of `x` that is not negative and has canonical NaNs. */
// @ts-ignore: decorator
@inline
export function keptPositive<T>(x: v128, floor: v128): v128 {
  return v128.and(x, above<T>(x, floor));
}

// @ts-ignore: decorator
@inline
function above<T>(x: v128, floor: v128): v128 {
  return sizeof<T>() == 4 ? i32x4.gt_s(x, floor) : i64x2.gt_s(x, floor);
}

// NaN. Making every stored vector canonical would cost more than a rule's own arithmetic. In nearly
// all rules a NaN in a slot makes the new value NaN, so a kernel adds up its new values; if a sum is
// NaN, all that was stored is made canonical at the end. Infinities of both signs sum up to NaN as well:
// a pass for nothing.

/** Whether a NaN went into `sum`. */
// @ts-ignore: decorator
@inline
export function isSuspect<T>(sum: v128): bool {
  return v128.any_true(v128.ne<T>(sum, sum));
}

/** Makes the NaNs among `n` elements canonical. */
// @ts-ignore: decorator
@inline
export function settle<T>(range: usize, n: u32): void {
  if (sizeof<T>() == 4) canonicalF32(range, n);
  else canonicalF64(range, n);
}
