import {
  factor, floorAt, floorOf, is, isSuspect, kept, keptPositive, lanes, leastSquared, magnitudeMask, No,
  padded, pin, pinned, settle, smallest, unpad, whole, Yes,
} from "./lanes";

// Adam, AdamW and AMSGrad. `decay` is lr·l2 where L2 is decoupled. Without one its terms are left
// out: they would cost a third more.
//
// The root and the quotient keep the processor's divider busy for three quarters of the time, and each
// other operation delays them: so first moments and gradients have one floor, and second moments are
// raised to theirs by one operation where replacing them by 0 takes two.

/** The least gradient that counts. */
// @ts-ignore: decorator
@inline
function leastGradient<T>(beta1: f64, beta2: f64): f64 {
  return max(leastSquared<T>(1 - beta2), smallest<T>() / (1 - beta1));
}

/** Whether first moments are kept at all. */
// @ts-ignore: decorator
@inline
export function keepsFirstMoment<T>(beta1: f64, beta2: f64): bool {
  return beta1 * leastGradient<T>(beta1, beta2) >= smallest<T>();
}

/** Whether second moments are kept at all. */
// @ts-ignore: decorator
@inline
export function keepsSecondMoment<T>(beta2: f64): bool {
  return beta2 >= smallest<T>();
}

/**
 * Writes down the coefficients. Moments that are not to be kept at all are cleared: their product with
 * a coefficient of 0 would be NaN if they were infinite.
 */
export function prepare<T>(
  first: usize, second: usize, n: u32, beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  const least = leastGradient<T>(beta1, beta2);
  const bytes = <usize>n * sizeof<T>();
  const keepsFirst = keepsFirstMoment<T>(beta1, beta2);
  if (!keepsFirst) memory.fill(first, 0, bytes);
  const keepsSecond = keepsSecondMoment<T>(beta2);
  if (!keepsSecond) memory.fill(second, 0, bytes);
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(keepsFirst ? beta1 : 0));
  pin(2, factor<T>(1 - beta1));
  pin(3, factor<T>(beta2));
  // Twice, so that the product is normal after rounding too.
  pin(4, v128.splat<T>(keepsSecond ? <T>((2 * smallest<T>()) / beta2) : <T>0));
  pin(5, factor<T>(1 - beta2));
  pin(6, floorAt<T>(least));
  prepareRate<T>(lr, epsilon, decay);
  pin(11, floorOf<T>(1, 0));
}

/** Writes down the coefficients that depend on the number of the update. */
// @ts-ignore: decorator
@inline
export function prepareRate<T>(lr: f64, epsilon: f64, decay: f64): void {
  pin(7, factor<T>(lr));
  pin(8, v128.splat<T>(<T>epsilon));
  pin(9, factor<T>(decay));
  pin(10, floorOf<T>(decay, 0));
}

/**
 * The step. `Inside`: the epsilon is added under the root; else to the root. `Largest`: the root is
 * that of the largest second moment so far, in `most`. `Decays`: the value loses decay · value too.
 *
 * Each combination is a function of its own: with two loops in one, V8 runs out of registers.
 */
export function descend<T, Inside, Largest, Decays>(
  value: usize, gradient: usize, first: usize, second: usize, most: usize, n: u32,
): void {
  const filled = whole<T>(n);
  const mask = pinned(0);
  const keepFirst = pinned(1);
  const shareFirst = pinned(2);
  const keepSecond = pinned(3);
  const leastSecond = pinned(4);
  const shareSecond = pinned(5);
  const floor = pinned(6);
  const rate = pinned(7);
  const addend = pinned(8);
  const loss = is<Decays>() ? pinned(9) : mask;
  const lossFloor = is<Decays>() ? pinned(10) : mask;
  const mostFloor = is<Largest>() ? pinned(11) : mask;
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const g = kept<T>(v128.load(gradient + at), floor, mask);
    const m = v128.add<T>(
      v128.mul<T>(keepFirst, kept<T>(v128.load(first + at), floor, mask)),
      v128.mul<T>(shareFirst, g),
    );
    const v = v128.add<T>(
      v128.mul<T>(keepSecond, v128.pmax<T>(v128.load(second + at), leastSecond)),
      v128.mul<T>(v128.mul<T>(shareSecond, g), g),
    );
    v128.store(first + at, m);
    v128.store(second + at, v);
    let scale = v;
    if (is<Largest>()) {
      scale = v128.pmax<T>(keptPositive<T>(v128.load(most + at), mostFloor), v);
      v128.store(most + at, scale);
    }
    const root = is<Inside>()
      ? v128.sqrt<T>(v128.add<T>(scale, addend))
      : v128.add<T>(v128.sqrt<T>(scale), addend);
    let step = v128.div<T>(v128.mul<T>(rate, m), root);
    const p = v128.load(value + at);
    if (is<Decays>()) step = v128.add<T>(step, v128.mul<T>(loss, kept<T>(p, lossFloor, mask)));
    const next = v128.sub<T>(p, step);
    v128.store(value + at, next);
    // The largest second moment so far hides a NaN of the present one from the value.
    sum = v128.add<T>(sum, is<Largest>() ? v128.add<T>(next, v) : next);
  }
  if (isSuspect<T>(sum)) {
    settle<T>(value, filled);
    settle<T>(first, filled);
    settle<T>(second, filled);
    if (is<Largest>()) settle<T>(most, filled);
  }
  if (filled == n) return;
  descend<T, Inside, Largest, Decays>(
    padded<T>(0, value, n), padded<T>(1, gradient, n), padded<T>(2, first, n), padded<T>(3, second, n),
    is<Largest>() ? padded<T>(4, most, n) : 0, lanes<T>(),
  );
  unpad<T>(0, value, n);
  unpad<T>(2, first, n);
  unpad<T>(3, second, n);
  if (is<Largest>()) unpad<T>(4, most, n);
}

/** m = beta1 m + (1-beta1) g; v = beta2 v + (1-beta2) g²; p -= lr m / sqrt(v + epsilon) + decay p */
export function adamF32(
  value: usize, gradient: usize, first: usize, second: usize, n: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  prepare<f32>(first, second, n, beta1, beta2, lr, epsilon, decay);
  if (decay == 0) descend<f32, Yes, No, No>(value, gradient, first, second, 0, n);
  else descend<f32, Yes, No, Yes>(value, gradient, first, second, 0, n);
}

/** As adamF32. */
export function adamF64(
  value: usize, gradient: usize, first: usize, second: usize, n: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  prepare<f64>(first, second, n, beta1, beta2, lr, epsilon, decay);
  if (decay == 0) descend<f64, Yes, No, No>(value, gradient, first, second, 0, n);
  else descend<f64, Yes, No, Yes>(value, gradient, first, second, 0, n);
}

/** As adamF32, but p -= lr m / (sqrt(v) + epsilon) + decay p */
export function adamwF32(
  value: usize, gradient: usize, first: usize, second: usize, n: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  prepare<f32>(first, second, n, beta1, beta2, lr, epsilon, decay);
  if (decay == 0) descend<f32, No, No, No>(value, gradient, first, second, 0, n);
  else descend<f32, No, No, Yes>(value, gradient, first, second, 0, n);
}

/** As adamwF32. */
export function adamwF64(
  value: usize, gradient: usize, first: usize, second: usize, n: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  prepare<f64>(first, second, n, beta1, beta2, lr, epsilon, decay);
  if (decay == 0) descend<f64, No, No, No>(value, gradient, first, second, 0, n);
  else descend<f64, No, No, Yes>(value, gradient, first, second, 0, n);
}

/** As adamwF32, with most = max(most, v) under the root */
export function amsgradF32(
  value: usize, gradient: usize, first: usize, second: usize, most: usize, n: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  prepare<f32>(first, second, n, beta1, beta2, lr, epsilon, decay);
  if (decay == 0) descend<f32, No, Yes, No>(value, gradient, first, second, most, n);
  else descend<f32, No, Yes, Yes>(value, gradient, first, second, most, n);
}

/** As amsgradF32. */
export function amsgradF64(
  value: usize, gradient: usize, first: usize, second: usize, most: usize, n: u32,
  beta1: f64, beta2: f64, lr: f64, epsilon: f64, decay: f64,
): void {
  prepare<f64>(first, second, n, beta1, beta2, lr, epsilon, decay);
  if (decay == 0) descend<f64, No, Yes, No>(value, gradient, first, second, most, n);
  else descend<f64, No, Yes, Yes>(value, gradient, first, second, most, n);
}
