import {
  factor, floorAt, floorOf, isSuspect, kept, keptPositive, lanes, leastSquared, magnitudeMask, padded, pin,
  pinned, settle, unpad, whole,
} from "./lanes";

/** Writes down the coefficients. */
function prepare<T>(sums: bool, lr: f64, rho: f64, epsilon: f64, decay: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(lr));
  pin(2, floorAt<T>(leastSquared<T>(sums ? 1 : 1 - rho)));
  pin(3, v128.splat<T>(<T>epsilon));
  pin(4, factor<T>(rho));
  pin(5, factor<T>(1 - rho));
  pin(6, floorOf<T>(sums ? 1 : rho, 0));
  pin(7, factor<T>(decay));
  pin(8, floorOf<T>(decay, 0));
}

/**
 * Adagrad and RMSProp: one pass over whole vectors; gives whether it stored a NaN.
 *
 * Adagrad (`sums`) adds squares up and has its epsilon under the root; RMSProp averages with rho and
 * adds its epsilon to the root.
 */
// @ts-ignore: decorator
@inline
function sweep<T>(
  sums: bool, decays: bool,
  value: usize, gradient: usize, squares: usize, filled: u32,
): bool {
  const mask = pinned(0);
  const rate = pinned(1);
  const gradientFloor = pinned(2);
  const addend = pinned(3);
  const keep = sums ? mask : pinned(4);
  const share = sums ? mask : pinned(5);
  const keepFloor = pinned(6);
  const loss = decays ? pinned(7) : mask;
  const lossFloor = decays ? pinned(8) : mask;
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const g = kept<T>(v128.load(gradient + at), gradientFloor, mask);
    const before = keptPositive<T>(v128.load(squares + at), keepFloor);
    const square = sums
      ? v128.add<T>(before, v128.mul<T>(g, g))
      : v128.add<T>(v128.mul<T>(keep, before), v128.mul<T>(v128.mul<T>(share, g), g));
    v128.store(squares + at, square);
    const root = sums
      ? v128.sqrt<T>(v128.add<T>(square, addend))
      : v128.add<T>(v128.sqrt<T>(square), addend);
    let step = v128.div<T>(v128.mul<T>(rate, g), root);
    const p = v128.load(value + at);
    if (decays) step = v128.add<T>(step, v128.mul<T>(loss, kept<T>(p, lossFloor, mask)));
    const next = v128.sub<T>(p, step);
    v128.store(value + at, next);
    sum = v128.add<T>(sum, next);
  }
  return isSuspect<T>(sum);
}

function descend<T>(
  sums: bool,
  value: usize, gradient: usize, squares: usize, n: u32,
  lr: f64, rho: f64, epsilon: f64, decay: f64,
): void {
  const filled = whole<T>(n);
  prepare<T>(sums, lr, rho, epsilon, decay);
  let suspect: bool;
  if (sums) {
    suspect = decay == 0
      ? sweep<T>(true, false, value, gradient, squares, filled)
      : sweep<T>(true, true, value, gradient, squares, filled);
  } else {
    suspect = decay == 0
      ? sweep<T>(false, false, value, gradient, squares, filled)
      : sweep<T>(false, true, value, gradient, squares, filled);
  }
  if (suspect) {
    settle<T>(value, filled);
    settle<T>(squares, filled);
  }
  if (filled == n) return;
  descend<T>(
    sums,
    padded<T>(0, value, n), padded<T>(1, gradient, n), padded<T>(2, squares, n), lanes<T>(),
    lr, rho, epsilon, decay,
  );
  unpad<T>(0, value, n);
  unpad<T>(2, squares, n);
}

/** G += g²; p -= lr g / sqrt(G + epsilon) + decay p */
export function adagradF32(
  value: usize, gradient: usize, squares: usize, n: u32, lr: f64, epsilon: f64, decay: f64,
): void {
  descend<f32>(true, value, gradient, squares, n, lr, 1, epsilon, decay);
}

/** As adagradF32. */
export function adagradF64(
  value: usize, gradient: usize, squares: usize, n: u32, lr: f64, epsilon: f64, decay: f64,
): void {
  descend<f64>(true, value, gradient, squares, n, lr, 1, epsilon, decay);
}

/** E = rho E + (1-rho) g²; p -= lr g / (sqrt(E) + epsilon) + decay p */
export function rmspropF32(
  value: usize, gradient: usize, squares: usize, n: u32,
  lr: f64, rho: f64, epsilon: f64, decay: f64,
): void {
  descend<f32>(false, value, gradient, squares, n, lr, rho, epsilon, decay);
}

/** As rmspropF32. */
export function rmspropF64(
  value: usize, gradient: usize, squares: usize, n: u32,
  lr: f64, rho: f64, epsilon: f64, decay: f64,
): void {
  descend<f64>(false, value, gradient, squares, n, lr, rho, epsilon, decay);
}
