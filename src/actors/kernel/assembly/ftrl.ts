import {
  factor, floorOf, isSuspect, kept, keptPositive, lanes, leastSquared, magnitudeMask, padded, pin, pinned,
  settle, unpad, whole,
} from "./lanes";

function ftrl<T>(
  value: usize, gradient: usize, linear: usize, squares: usize, n: u32,
  alpha: f64, beta: f64, l1: f64, l2: f64,
): void {
  const filled = whole<T>(n);
  pin(0, magnitudeMask<T>());
  pin(1, floorOf<T>(1, leastSquared<T>(1)));
  pin(2, floorOf<T>(1, 0));
  pin(3, factor<T>(1 / alpha));
  pin(4, v128.splat<T>(<T>beta));
  pin(5, v128.splat<T>(<T>l1));
  pin(6, v128.splat<T>(<T>l2));
  pin(7, v128.splat<T>(<T>-0.0));
  pin(8, v128.splat<T>(<T>0));
  const mask = pinned(0);
  const rootFloor = pinned(1);
  const squaresFloor = pinned(2);
  const perAlpha = pinned(3);
  const bias = pinned(4);
  const shrink = pinned(5);
  const ridge = pinned(6);
  const signs = pinned(7);
  const zero = pinned(8);
  let sum = zero;
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const g = kept<T>(v128.load(gradient + at), rootFloor, mask);
    const before = keptPositive<T>(v128.load(squares + at), squaresFloor);
    const square = v128.add<T>(before, v128.mul<T>(g, g));
    v128.store(squares + at, square);
    const root = v128.sqrt<T>(square);
    const growth = kept<T>(v128.sub<T>(root, v128.sqrt<T>(before)), rootFloor, mask);
    const p = kept<T>(v128.load(value + at), rootFloor, mask);
    const z = v128.add<T>(
      v128.load(linear + at),
      v128.sub<T>(g, v128.mul<T>(v128.mul<T>(growth, perAlpha), p)),
    );
    v128.store(linear + at, z);
    // What is left of |z| after l1; pmax keeps a NaN.
    const rest = kept<T>(v128.pmax<T>(v128.sub<T>(v128.and(z, mask), shrink), zero), rootFloor, mask);
    const size = v128.div<T>(
      rest,
      v128.add<T>(v128.mul<T>(v128.add<T>(bias, root), perAlpha), ridge),
    );
    const sign = v128.andnot(v128.andnot(signs, z), v128.eq<T>(rest, zero));
    const next = v128.xor(size, sign);
    v128.store(value + at, next);
    sum = v128.add<T>(sum, next);
  }
  if (isSuspect<T>(sum)) {
    settle<T>(value, filled);
    settle<T>(linear, filled);
    settle<T>(squares, filled);
  }
  if (filled == n) return;
  ftrl<T>(
    padded<T>(0, value, n), padded<T>(1, gradient, n), padded<T>(2, linear, n), padded<T>(3, squares, n),
    lanes<T>(), alpha, beta, l1, l2,
  );
  unpad<T>(0, value, n);
  unpad<T>(2, linear, n);
  unpad<T>(3, squares, n);
}

/**
 * FTRL-Proximal (McMahan and others, 2013): z += g - (sqrt(N + g²) - sqrt(N)) / alpha p; N += g²;
 * p = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(N)) / alpha + l2).
 * The differences of roots add up to sqrt(N) exactly, however much of a square N + g² rounds off.
 */
export function ftrlF32(
  value: usize, gradient: usize, linear: usize, squares: usize, n: u32,
  alpha: f64, beta: f64, l1: f64, l2: f64,
): void {
  ftrl<f32>(value, gradient, linear, squares, n, alpha, beta, l1, l2);
}

/** As ftrlF32. */
export function ftrlF64(
  value: usize, gradient: usize, linear: usize, squares: usize, n: u32,
  alpha: f64, beta: f64, l1: f64, l2: f64,
): void {
  ftrl<f64>(value, gradient, linear, squares, n, alpha, beta, l1, l2);
}
