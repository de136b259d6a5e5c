// Lists of row numbers, checked, sorted and added up as a whole. Compiled by scripts/build-kernels.mjs
// into ../wasm.ts; run it after every change.

/** 1 if `n` uint32, one or more, are in strictly ascending order, else 0. */
export function ascending(numbers: usize, n: u32): u32 {
  let rest = n - 1;
  let least = i32x4.splat(-1);
  for (; rest >= 4; rest -= 4) {
    least = v128.and(least, i32x4.lt_u(v128.load(numbers), v128.load(numbers, 4)));
    numbers += 16;
  }
  if (!i32x4.all_true(least)) return 0;
  for (; rest > 0; rest--) {
    if (load<u32>(numbers) >= load<u32>(numbers, 4)) return 0;
    numbers += 4;
  }
  return 1;
}

/** Number of passes of the sort: one for each byte of a number below 2^53. */
const DIGITS: u64 = 7;
/** How many numbers have a value of the byte that a pass sorts by; then where they begin. */
const STARTS = memory.data(256 * 4, 16);

/** One pass of the sort: pairs of a number and its place, 16 bytes each, from `a` to `b`. */
function sortByDigit(a: usize, b: usize, n: u32, shift: u64): void {
  memory.fill(STARTS, 0, 256 * 4);
  for (let i: u32 = 0; i < n; i++) {
    const digit = <usize>((load<u64>(a + (<usize>i << 4)) >> shift) & 0xff);
    const at = STARTS + (digit << 2);
    store<u32>(at, load<u32>(at) + 1);
  }
  let next: u32 = 0;
  for (let digit: usize = 0; digit < 256; digit++) {
    const here = load<u32>(STARTS + (digit << 2));
    store<u32>(STARTS + (digit << 2), next);
    next += here;
  }
  for (let i: u32 = 0; i < n; i++) {
    const pair = v128.load(a + (<usize>i << 4));
    const digit = <usize>((<u64>i64x2.extract_lane(pair, 0) >> shift) & 0xff);
    const at = STARTS + (digit << 2);
    const place = load<u32>(at);
    store<u32>(at, place + 1);
    v128.store(b + (<usize>place << 4), pair);
  }
}

/**
 * Sorts `n` float64 that are whole numbers from 0 on, and leaves out repeats: replaces them by the
 * distinct numbers, ascending, and gives how many there are. `places` gets, for each of the original
 * numbers, its place among the distinct ones. `work` is for 32 bytes a number.
 */
export function distinct(numbers: usize, places: usize, n: u32, work: usize): u32 {
  if (n == 0) return 0;
  const first = <u64>load<f64>(numbers);
  let differing: u64 = 0;
  for (let i: u32 = 0; i < n; i++) {
    const number = <u64>load<f64>(numbers + (<usize>i << 3));
    differing |= number ^ first;
    store<u64>(work + (<usize>i << 4), number);
    store<u64>(work + (<usize>i << 4), i, 8);
  }
  let a = work;
  let b = work + (<usize>n << 4);
  for (let digit: u64 = 0; digit < DIGITS; digit++) {
    if (((differing >> (digit << 3)) & 0xff) == 0) continue;
    sortByDigit(a, b, n, digit << 3);
    const from = a;
    a = b;
    b = from;
  }
  let found: u32 = 0;
  let last: u64 = 0;
  for (let i: u32 = 0; i < n; i++) {
    const number = load<u64>(a + (<usize>i << 4));
    if (i == 0 || number != last) {
      store<f64>(numbers + (<usize>found << 3), <f64>number);
      found += 1;
      last = number;
    }
    store<u32>(places + (<usize>load<u32>(a + (<usize>i << 4), 8) << 2), found - 1);
  }
  return found;
}

/** Adds a row of elements to another. */
// @ts-ignore: decorator
@inline
function addRow<T>(to: usize, from: usize, elements: u32): void {
  for (; elements >= 16 / <u32>sizeof<T>(); elements -= 16 / <u32>sizeof<T>()) {
    v128.store(to, v128.add<T>(v128.load(to), v128.load(from)));
    to += 16;
    from += 16;
  }
  for (; elements > 0; elements--) {
    store<T>(to, load<T>(to) + load<T>(from));
    to += sizeof<T>();
    from += sizeof<T>();
  }
}

/** Copies a row of a multiple of 4 bytes. */
// @ts-ignore: decorator
@inline
function copyRow(to: usize, from: usize, bytes: usize): void {
  for (; bytes >= 16; bytes -= 16) {
    v128.store(to, v128.load(from));
    to += 16;
    from += 16;
  }
  for (; bytes > 0; bytes -= 4) {
    store<u32>(to, load<u32>(from));
    to += 4;
    from += 4;
  }
}

/**
 * Adds `n` rows to sums, in order: row i to the sum with the number that `places` has for it, less
 * `first`; those below 0 or from `sums` on are passed over. The first row of a sum is copied,
 * because adding it to 0 would lose the sign of a negative zero: `begun` has a byte for each sum
 * that is 0 until then.
 */
// @ts-ignore: decorator
@inline
function addRows<T>(
  target: usize, begun: usize, first: u32, sums: u32,
  rows: usize, places: usize, n: u32, elements: u32,
): void {
  const bytes = <usize>elements * sizeof<T>();
  for (; n > 0; n--) {
    const place = load<u32>(places) - first;
    if (place < sums) {
      const to = target + <usize>place * bytes;
      if (load<u8>(begun + place) != 0) {
        addRow<T>(to, rows, elements);
      } else {
        copyRow(to, rows, bytes);
        store<u8>(begun + place, 1);
      }
    }
    places += 4;
    rows += bytes;
  }
}

/** As addRows, of float32. */
export function addRowsF32(
  target: usize, begun: usize, first: u32, sums: u32,
  rows: usize, places: usize, n: u32, elements: u32,
): void {
  addRows<f32>(target, begun, first, sums, rows, places, n, elements);
}

/** As addRows, of float64. */
export function addRowsF64(
  target: usize, begun: usize, first: u32, sums: u32,
  rows: usize, places: usize, n: u32, elements: u32,
): void {
  addRows<f64>(target, begun, first, sums, rows, places, n, elements);
}

/** As addRows, of int32 or uint32, modulo 2^32. */
export function addRowsI32(
  target: usize, begun: usize, first: u32, sums: u32,
  rows: usize, places: usize, n: u32, elements: u32,
): void {
  addRows<i32>(target, begun, first, sums, rows, places, n, elements);
}

/** As addRows, of int64 or uint64, modulo 2^64. */
export function addRowsI64(
  target: usize, begun: usize, first: u32, sums: u32,
  rows: usize, places: usize, n: u32, elements: u32,
): void {
  addRows<i64>(target, begun, first, sums, rows, places, n, elements);
}
