import {
  factor, floorAt, floorOf, isSuspect, kept, keptPositive, lanes, leastSquared, magnitudeMask, padded, pin,
  pinned, settle, unpad, whole,
} from "./lanes";

/** Writes down the coefficients. */
function prepare<T>(lr: f64, rho: f64, epsilon: f64, decay: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(lr));
  pin(2, factor<T>(rho));
  pin(3, floorOf<T>(rho, 0));
  pin(4, factor<T>(1 - rho));
  pin(5, floorAt<T>(leastSquared<T>(1 - rho)));
  pin(6, v128.splat<T>(<T>epsilon));
  pin(7, factor<T>(decay));
  pin(8, floorOf<T>(decay, 0));
}

/** One pass over whole vectors; gives whether it stored a NaN. */
// @ts-ignore: decorator
@inline
function sweep<T>(
  decays: bool,
  value: usize, gradient: usize, squares: usize, deltas: usize, filled: u32,
): bool {
  const mask = pinned(0);
  const rate = pinned(1);
  const keep = pinned(2);
  const keepFloor = pinned(3);
  const share = pinned(4);
  const squareFloor = pinned(5);
  const addend = pinned(6);
  const loss = decays ? pinned(7) : mask;
  const lossFloor = decays ? pinned(8) : mask;
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const g = kept<T>(v128.load(gradient + at), squareFloor, mask);
    const square = v128.add<T>(
      v128.mul<T>(keep, keptPositive<T>(v128.load(squares + at), keepFloor)),
      v128.mul<T>(v128.mul<T>(share, g), g),
    );
    v128.store(squares + at, square);
    const before = keptPositive<T>(v128.load(deltas + at), keepFloor);
    const ratio = v128.div<T>(v128.add<T>(before, addend), v128.add<T>(square, addend));
    const delta = kept<T>(v128.mul<T>(v128.sqrt<T>(ratio), g), squareFloor, mask);
    v128.store(
      deltas + at,
      v128.add<T>(v128.mul<T>(keep, before), v128.mul<T>(v128.mul<T>(share, delta), delta)),
    );
    let step = v128.mul<T>(rate, delta);
    const p = v128.load(value + at);
    if (decays) step = v128.add<T>(step, v128.mul<T>(loss, kept<T>(p, lossFloor, mask)));
    const next = v128.sub<T>(p, step);
    v128.store(value + at, next);
    sum = v128.add<T>(sum, next);
  }
  return isSuspect<T>(sum);
}

function adadelta<T>(
  value: usize, gradient: usize, squares: usize, deltas: usize, n: u32,
  lr: f64, rho: f64, epsilon: f64, decay: f64,
): void {
  const filled = whole<T>(n);
  prepare<T>(lr, rho, epsilon, decay);
  const suspect = decay == 0
    ? sweep<T>(false, value, gradient, squares, deltas, filled)
    : sweep<T>(true, value, gradient, squares, deltas, filled);
  if (suspect) {
    settle<T>(value, filled);
    settle<T>(squares, filled);
    settle<T>(deltas, filled);
  }
  if (filled == n) return;
  adadelta<T>(
    padded<T>(0, value, n), padded<T>(1, gradient, n), padded<T>(2, squares, n), padded<T>(3, deltas, n),
    lanes<T>(), lr, rho, epsilon, decay,
  );
  unpad<T>(0, value, n);
  unpad<T>(2, squares, n);
  unpad<T>(3, deltas, n);
}

/**
 * E = rho E + (1-rho) g²; d = sqrt((D + epsilon) / (E + epsilon)) g; D = rho D + (1-rho) d²;
 * p -= lr d + decay p. One root of a quotient: the quotient of two roots is rounded once more.
 */
export function adadeltaF32(
  value: usize, gradient: usize, squares: usize, deltas: usize, n: u32,
  lr: f64, rho: f64, epsilon: f64, decay: f64,
): void {
  adadelta<f32>(value, gradient, squares, deltas, n, lr, rho, epsilon, decay);
}

/** As adadeltaF32. */
export function adadeltaF64(
  value: usize, gradient: usize, squares: usize, deltas: usize, n: u32,
  lr: f64, rho: f64, epsilon: f64, decay: f64,
): void {
  adadelta<f64>(value, gradient, squares, deltas, n, lr, rho, epsilon, decay);
}
