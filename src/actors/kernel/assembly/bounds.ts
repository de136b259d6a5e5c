import { isSuspect, lanes, magnitudeMask, padded, pin, pinned, settle, unpad, whole } from "./lanes";

function clip<T>(target: usize, n: u32, bound: f64): void {
  pin(0, v128.splat<T>(<T>bound));
  pin(1, v128.splat<T>(-<T>bound));
  const high = pinned(0);
  const low = pinned(1);
  const filled = whole<T>(n);
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    // The comparisons of pmin and pmax are false for a NaN, which stays.
    const x = v128.pmax<T>(v128.pmin<T>(v128.load(target + at), high), low);
    v128.store(target + at, x);
    sum = v128.add<T>(sum, x);
  }
  if (isSuspect<T>(sum)) settle<T>(target, filled);
  if (filled == n) return;
  clip<T>(padded<T>(0, target, n), lanes<T>(), bound);
  unpad<T>(0, target, n);
}

/** target = max(min(target, bound), -bound) */
export function clipF32(target: usize, n: u32, bound: f64): void {
  clip<f32>(target, n, bound);
}

/** As clipF32. */
export function clipF64(target: usize, n: u32, bound: f64): void {
  clip<f64>(target, n, bound);
}

function proximal<T>(value: usize, n: u32, threshold: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, v128.splat<T>(<T>threshold));
  pin(2, v128.splat<T>(<T>0));
  const mask = pinned(0);
  const shrink = pinned(1);
  const zero = pinned(2);
  const filled = whole<T>(n);
  let sum = zero;
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const p = v128.load(value + at);
    const rest = v128.sub<T>(v128.and(p, mask), shrink);
    // Neither magnitude nor sign where nothing is left: the zero is +0.
    const x = v128.andnot(v128.or(rest, v128.andnot(p, mask)), v128.le<T>(rest, zero));
    v128.store(value + at, x);
    sum = v128.add<T>(sum, x);
  }
  if (isSuspect<T>(sum)) settle<T>(value, filled);
  if (filled == n) return;
  proximal<T>(padded<T>(0, value, n), lanes<T>(), threshold);
  unpad<T>(0, value, n);
}

/** value = sign(value) max(|value| - threshold, 0) */
export function proximalF32(value: usize, n: u32, threshold: f64): void {
  proximal<f32>(value, n, threshold);
}

/** As proximalF32. */
export function proximalF64(value: usize, n: u32, threshold: f64): void {
  proximal<f64>(value, n, threshold);
}
