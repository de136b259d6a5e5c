// Rows of blocks that a list names. A rule updates rows that do not lie together in four steps: they are
// gathered into contiguous ranges, ordered by their update count, updated range by range as any
// elements, and scattered back. No result depends on where an element lies, so it is the same as if
// the rule ran on each row alone.
//
// `rows` is the address of `n` row numbers, uint32. A row has `bytes` bytes.

/** Copies one row. */
// @ts-ignore: decorator
@inline
export function copyRow(to: usize, from: usize, bytes: u32): void {
  let left = bytes;
  for (; left >= 16; left -= 16) {
    v128.store(to, v128.load(from));
    to += 16;
    from += 16;
  }
  for (; left >= 4; left -= 4) {
    store<u32>(to, load<u32>(from));
    to += 4;
    from += 4;
  }
  for (; left > 0; left--) {
    store<u8>(to, load<u8>(from));
    to += 1;
    from += 1;
  }
}

/** Copies the rows of a list, one behind the other, to `to`. */
export function gatherRows(to: usize, base: usize, rows: usize, n: u32, bytes: u32): void {
  if (bytes == 4) {
    for (; n > 0; n--) {
      store<u32>(to, load<u32>(base + (<usize>load<u32>(rows) << 2)));
      to += 4;
      rows += 4;
    }
  } else if (bytes == 8) {
    for (; n > 0; n--) {
      store<u64>(to, load<u64>(base + (<usize>load<u32>(rows) << 3)));
      to += 8;
      rows += 4;
    }
  } else {
    for (; n > 0; n--) {
      copyRow(to, base + <usize>load<u32>(rows) * bytes, bytes);
      to += bytes;
      rows += 4;
    }
  }
}

/** Copies what lies one behind the other at `from` to the rows of a list. */
export function scatterRows(base: usize, rows: usize, from: usize, n: u32, bytes: u32): void {
  if (bytes == 4) {
    for (; n > 0; n--) {
      store<u32>(base + (<usize>load<u32>(rows) << 2), load<u32>(from));
      from += 4;
      rows += 4;
    }
  } else if (bytes == 8) {
    for (; n > 0; n--) {
      store<u64>(base + (<usize>load<u32>(rows) << 3), load<u64>(from));
      from += 8;
      rows += 4;
    }
  } else {
    for (; n > 0; n--) {
      copyRow(base + <usize>load<u32>(rows) * bytes, from, bytes);
      from += bytes;
      rows += 4;
    }
  }
}

/** Sets the bytes of the rows of a list to 0. */
export function clearRows(base: usize, rows: usize, n: u32, bytes: u32): void {
  for (; n > 0; n--) {
    memory.fill(base + <usize>load<u32>(rows) * bytes, 0, bytes);
    rows += 4;
  }
}

/** Writes the row numbers first, first + 1, … */
export function numberRows(rows: usize, first: u32, n: u32): void {
  for (; n > 0; n--) {
    store<u32>(rows, first);
    first += 1;
    rows += 4;
  }
}

/** Adds 1 to the uint32 at `counts` of each row of a list; 2^32 - 1 stays. */
export function countRows(counts: usize, rows: usize, n: u32): void {
  for (; n > 0; n--) {
    const at = counts + (<usize>load<u32>(rows) << 2);
    const count = load<u32>(at);
    store<u32>(at, count + u32(count != u32.MAX_VALUE));
    rows += 4;
  }
}

/** Adds 1 to each of `n` uint32 at `counts`; 2^32 - 1 stays. */
export function countAll(counts: usize, n: u32): void {
  const full = i32x4.splat(-1);
  for (; n >= 4; n -= 4) {
    const x = v128.load(counts);
    // Where it is not full, -1 is taken off.
    v128.store(counts, i32x4.sub(x, v128.not(i32x4.eq(x, full))));
    counts += 16;
  }
  for (; n > 0; n--) {
    const count = load<u32>(counts);
    store<u32>(counts, count + u32(count != u32.MAX_VALUE));
    counts += 4;
  }
}

/** Sets the byte at `touched` of each row of a list to 1. */
export function touchRows(touched: usize, rows: usize, n: u32): void {
  for (; n > 0; n--) {
    store<u8>(touched + load<u32>(rows), 1);
    rows += 4;
  }
}

/**
 * Writes the numbers of touched rows from `first` on, ascending, to `rows`, until `most` are found or
 * `end` is reached; gives how many.
 */
export function touchedRows(rows: usize, touched: usize, first: u32, end: u32, most: u32): u32 {
  let found: u32 = 0;
  let row = first;
  while (row < end && found < most) {
    if (end - row >= 8 && load<u64>(touched + row) == 0) {
      row += 8;
      continue;
    }
    if (load<u8>(touched + row) != 0) {
      store<u32>(rows + (<usize>found << 2), row);
      found += 1;
    }
    row += 1;
  }
  return found;
}

/** Number of passes of the sort: one for each byte of a count. */
const DIGITS: u32 = 4;
/** How many counts have a value of the byte that a pass sorts by; then where they begin. */
const PLACES = memory.data(256 * 4, 16);

/** Sorts `n` pairs of count (high) and place (low) by count, stably; gives where they lie, `a` or `b`. */
function sortPairs(a: usize, b: usize, n: u32, differing: u32): usize {
  for (let digit: u32 = 0; digit < DIGITS; digit++) {
    const shift = digit << 3;
    if (((differing >> shift) & 0xff) == 0) continue;
    memory.fill(PLACES, 0, 256 * 4);
    for (let i: u32 = 0; i < n; i++) {
      const at = PLACES + (<usize>((load<u32>(a + (<usize>i << 3), 4) >> shift) & 0xff) << 2);
      store<u32>(at, load<u32>(at) + 1);
    }
    let next: u32 = 0;
    for (let value: usize = 0; value < 256; value++) {
      const here = load<u32>(PLACES + (value << 2));
      store<u32>(PLACES + (value << 2), next);
      next += here;
    }
    for (let i: u32 = 0; i < n; i++) {
      const pair = load<u64>(a + (<usize>i << 3));
      const at = PLACES + (<usize>((<u32>(pair >> 32) >> shift) & 0xff) << 2);
      const place = load<u32>(at);
      store<u32>(at, place + 1);
      store<u64>(b + (<usize>place << 3), pair);
    }
    const from = a;
    a = b;
    b = from;
  }
  return a;
}

/**
 * Divides the rows of a list into groups of the same update count: writes for each group its count and
 * the number of rows up to its end, both uint32, to `groups`; gives how many there are. If there are
 * several, `order` gets the places of the rows in the list, by group and then as in the list, and
 * `sorted` their numbers in that order; else both stay as they are.
 * @param work for 16 bytes a row, overwritten.
 */
export function groupRows(
  groups: usize, order: usize, sorted: usize, counts: usize, rows: usize, n: u32, work: usize,
): u32 {
  if (n == 0) return 0;
  const first = load<u32>(counts + (<usize>load<u32>(rows) << 2));
  let differing: u32 = 0;
  for (let i: u32 = 0; i < n; i++) {
    const count = load<u32>(counts + (<usize>load<u32>(rows + (<usize>i << 2)) << 2));
    differing |= count ^ first;
    store<u64>(work + (<usize>i << 3), (<u64>count << 32) | i);
  }
  if (differing == 0) {
    store<u32>(groups, first);
    store<u32>(groups, n, 4);
    return 1;
  }
  const pairs = sortPairs(work, work + (<usize>n << 3), n, differing);
  let found: u32 = 0;
  for (let i: u32 = 0; i < n; i++) {
    const pair = load<u64>(pairs + (<usize>i << 3));
    const count = <u32>(pair >> 32);
    const place = <u32>pair;
    store<u32>(order + (<usize>i << 2), place);
    store<u32>(sorted + (<usize>i << 2), load<u32>(rows + (<usize>place << 2)));
    if (found == 0 || load<u32>(groups + ((<usize>found - 1) << 3)) != count) {
      store<u32>(groups + (<usize>found << 3), count);
      found += 1;
    }
    store<u32>(groups + ((<usize>found - 1) << 3), i + 1, 4);
  }
  return found;
}

/** How many rows from `first` on, below `end`, have had as many updates as `first`. */
export function sameCounts(counts: usize, first: u32, end: u32): u32 {
  const count = load<u32>(counts + (<usize>first << 2));
  let row = first + 1;
  while (row < end && load<u32>(counts + (<usize>row << 2)) == count) row += 1;
  return row - first;
}
