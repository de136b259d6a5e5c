import { factor, floorOf, isSuspect, kept, lanes, magnitudeMask, padded, pin, pinned, settle, unpad, whole } from "./lanes";

function sgd<T>(value: usize, gradient: usize, n: u32, lr: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(lr));
  pin(2, floorOf<T>(lr, 0));
  const mask = pinned(0);
  const rate = pinned(1);
  const rateFloor = pinned(2);
  const filled = whole<T>(n);
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const step = v128.mul<T>(rate, kept<T>(v128.load(gradient + at), rateFloor, mask));
    const p = v128.sub<T>(v128.load(value + at), step);
    v128.store(value + at, p);
    sum = v128.add<T>(sum, p);
  }
  if (isSuspect<T>(sum)) settle<T>(value, filled);
  if (filled == n) return;
  sgd<T>(padded<T>(0, value, n), padded<T>(1, gradient, n), lanes<T>(), lr);
  unpad<T>(0, value, n);
}

/** p -= lr g */
export function sgdF32(value: usize, gradient: usize, n: u32, lr: f64): void {
  sgd<f32>(value, gradient, n, lr);
}

/** As sgdF32. */
export function sgdF64(value: usize, gradient: usize, n: u32, lr: f64): void {
  sgd<f64>(value, gradient, n, lr);
}
