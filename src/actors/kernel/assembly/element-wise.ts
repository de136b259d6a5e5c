import { factor, floorOf, isSuspect, kept, lanes, magnitudeMask, padded, pin, pinned, settle, unpad, whole } from "./lanes";

// What a push does around its rule: one pass over one or two ranges each.

function addScaled<T>(target: usize, source: usize, n: u32, scale: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(scale));
  pin(2, floorOf<T>(scale, 0));
  const mask = pinned(0);
  const by = pinned(1);
  const floor = pinned(2);
  const filled = whole<T>(n);
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const term = v128.mul<T>(by, kept<T>(v128.load(source + at), floor, mask));
    const x = v128.add<T>(v128.load(target + at), term);
    v128.store(target + at, x);
    sum = v128.add<T>(sum, x);
  }
  if (isSuspect<T>(sum)) settle<T>(target, filled);
  if (filled == n) return;
  addScaled<T>(padded<T>(0, target, n), padded<T>(1, source, n), lanes<T>(), scale);
  unpad<T>(0, target, n);
}

/** target += scale source */
export function addScaledF32(target: usize, source: usize, n: u32, scale: f64): void {
  addScaled<f32>(target, source, n, scale);
}

/** As addScaledF32. */
export function addScaledF64(target: usize, source: usize, n: u32, scale: f64): void {
  addScaled<f64>(target, source, n, scale);
}

function add<T>(target: usize, source: usize, n: u32): void {
  const filled = whole<T>(n);
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const x = v128.add<T>(v128.load(target + at), v128.load(source + at));
    v128.store(target + at, x);
    sum = v128.add<T>(sum, x);
  }
  if (isSuspect<T>(sum)) settle<T>(target, filled);
  if (filled == n) return;
  add<T>(padded<T>(0, target, n), padded<T>(1, source, n), lanes<T>());
  unpad<T>(0, target, n);
}

/** target += source */
export function addF32(target: usize, source: usize, n: u32): void {
  add<f32>(target, source, n);
}

/** target += source */
export function addF64(target: usize, source: usize, n: u32): void {
  add<f64>(target, source, n);
}

/** target += source modulo 2^32, for signed and unsigned elements alike. */
export function addI32(target: usize, source: usize, n: u32): void {
  for (; n >= 4; n -= 4) {
    v128.store(target, i32x4.add(v128.load(target), v128.load(source)));
    target += 16;
    source += 16;
  }
  for (; n > 0; n--) {
    store<i32>(target, load<i32>(target) + load<i32>(source));
    target += 4;
    source += 4;
  }
}

/** target += source modulo 2^64, for signed and unsigned elements alike. */
export function addI64(target: usize, source: usize, n: u32): void {
  for (; n >= 2; n -= 2) {
    v128.store(target, i64x2.add(v128.load(target), v128.load(source)));
    target += 16;
    source += 16;
  }
  if (n > 0) store<i64>(target, load<i64>(target) + load<i64>(source));
}

/** target += source modulo 2^8, for signed and unsigned elements alike. */
export function addI8(target: usize, source: usize, n: u32): void {
  for (; n >= 16; n -= 16) {
    v128.store(target, i8x16.add(v128.load(target), v128.load(source)));
    target += 16;
    source += 16;
  }
  for (; n > 0; n--) {
    store<i8>(target, load<i8>(target) + load<i8>(source));
    target += 1;
    source += 1;
  }
}

function scale<T>(target: usize, n: u32, by: f64): void {
  pin(0, magnitudeMask<T>());
  pin(1, factor<T>(by));
  pin(2, floorOf<T>(by, 0));
  const mask = pinned(0);
  const factors = pinned(1);
  const floor = pinned(2);
  const filled = whole<T>(n);
  let sum = v128.splat<T>(<T>0);
  const end = <usize>filled * sizeof<T>();
  for (let at: usize = 0; at < end; at += 16) {
    const x = v128.mul<T>(factors, kept<T>(v128.load(target + at), floor, mask));
    v128.store(target + at, x);
    sum = v128.add<T>(sum, x);
  }
  if (isSuspect<T>(sum)) settle<T>(target, filled);
  if (filled == n) return;
  scale<T>(padded<T>(0, target, n), lanes<T>(), by);
  unpad<T>(0, target, n);
}

/** target = by target */
export function scaleF32(target: usize, n: u32, by: f64): void {
  scale<f32>(target, n, by);
}

/** As scaleF32. */
export function scaleF64(target: usize, n: u32, by: f64): void {
  scale<f64>(target, n, by);
}

// @ts-ignore: decorator
@inline
function order<T>(least: usize, most: usize, n: u32): void {
  const lanes = <u32>(16 / sizeof<T>());
  for (; n >= lanes; n -= lanes) {
    const a = v128.load(least);
    const b = v128.load(most);
    v128.store(least, v128.min<T>(a, b));
    v128.store(most, v128.max<T>(a, b));
    least += 16;
    most += 16;
  }
  for (; n > 0; n--) {
    const a = load<T>(least);
    const b = load<T>(most);
    store<T>(least, min<T>(a, b));
    store<T>(most, max<T>(a, b));
    least += sizeof<T>();
    most += sizeof<T>();
  }
}

/** least, most = min(least, most), max(least, most); −0 is below 0. */
export function orderF32(least: usize, most: usize, n: u32): void {
  order<f32>(least, most, n);
}

/** As orderF32. */
export function orderF64(least: usize, most: usize, n: u32): void {
  order<f64>(least, most, n);
}
