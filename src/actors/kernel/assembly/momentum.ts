import { factor, floorOf, isSuspect, kept, lanes, magnitudeMask, padded, pin, pinned, settle, unpad, whole } from "./lanes";

/** Writes down the coefficients. */
function prepare<T>(lr: f64, mu: f64, decay: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(lr));
  pin(2, floorOf<T>(lr, 0));
  pin(3, factor<T>(mu));
  pin(4, floorOf<T>(mu, 0));
  pin(5, factor<T>(decay));
  pin(6, floorOf<T>(decay, 0));
}

/** One pass over whole vectors; gives whether it stored a NaN. */
// @ts-ignore: decorator
@inline
function sweep<T>(
  nesterov: bool, decays: bool,
  value: usize, gradient: usize, momentum: usize, filled: u32,
): bool {
  const mask = pinned(0);
  const rate = pinned(1);
  const rateFloor = pinned(2);
  const keep = pinned(3);
  const keepFloor = pinned(4);
  const loss = decays ? pinned(5) : mask;
  const lossFloor = decays ? pinned(6) : mask;
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const push = v128.mul<T>(rate, kept<T>(v128.load(gradient + at), rateFloor, mask));
    const before = kept<T>(v128.load(momentum + at), keepFloor, mask);
    const m = v128.sub<T>(v128.mul<T>(keep, before), push);
    v128.store(momentum + at, m);
    let step = nesterov
      ? v128.sub<T>(push, v128.mul<T>(keep, kept<T>(m, keepFloor, mask)))
      : v128.neg<T>(m);
    const p = v128.load(value + at);
    if (decays) step = v128.add<T>(step, v128.mul<T>(loss, kept<T>(p, lossFloor, mask)));
    const next = v128.sub<T>(p, step);
    v128.store(value + at, next);
    sum = v128.add<T>(sum, next);
  }
  return isSuspect<T>(sum);
}

function descend<T>(
  nesterov: bool,
  value: usize, gradient: usize, momentum: usize, n: u32, lr: f64, mu: f64, decay: f64,
): void {
  const filled = whole<T>(n);
  prepare<T>(lr, mu, decay);
  let suspect: bool;
  if (nesterov) {
    suspect = decay == 0
      ? sweep<T>(true, false, value, gradient, momentum, filled)
      : sweep<T>(true, true, value, gradient, momentum, filled);
  } else {
    suspect = decay == 0
      ? sweep<T>(false, false, value, gradient, momentum, filled)
      : sweep<T>(false, true, value, gradient, momentum, filled);
  }
  if (suspect) {
    settle<T>(value, filled);
    settle<T>(momentum, filled);
  }
  if (filled == n) return;
  descend<T>(
    nesterov,
    padded<T>(0, value, n), padded<T>(1, gradient, n), padded<T>(2, momentum, n), lanes<T>(),
    lr, mu, decay,
  );
  unpad<T>(0, value, n);
  unpad<T>(2, momentum, n);
}

/** m = mu m - lr g; p -= -m + decay p */
export function momentumF32(
  value: usize, gradient: usize, momentum: usize, n: u32, lr: f64, mu: f64, decay: f64,
): void {
  descend<f32>(false, value, gradient, momentum, n, lr, mu, decay);
}

/** As momentumF32. */
export function momentumF64(
  value: usize, gradient: usize, momentum: usize, n: u32, lr: f64, mu: f64, decay: f64,
): void {
  descend<f64>(false, value, gradient, momentum, n, lr, mu, decay);
}

/** m = mu m - lr g; p -= (lr g - mu m) + decay p */
export function nesterovF32(
  value: usize, gradient: usize, momentum: usize, n: u32, lr: f64, mu: f64, decay: f64,
): void {
  descend<f32>(true, value, gradient, momentum, n, lr, mu, decay);
}

/** As nesterovF32. */
export function nesterovF64(
  value: usize, gradient: usize, momentum: usize, n: u32, lr: f64, mu: f64, decay: f64,
): void {
  descend<f64>(true, value, gradient, momentum, n, lr, mu, decay);
}
