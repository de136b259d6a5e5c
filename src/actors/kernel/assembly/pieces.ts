// Pieces of blocks: small ranges that lie apart, such as whole small blocks or rows of several blocks. A rule
// changes many of them at once: they are gathered into contiguous ranges, changed there as any elements, and
// scattered back. No result depends on where an element lies, so it is the same as if the rule ran on each alone.
//
// A table has a row of five uint32 for each piece: its bytes, and its address in each of up to four columns.

import {
  measureF32, measureF64, measureI32, measureI64, measureI8, measured, measureU32, measureU64, measureU8,
} from "./measure";
import { copyRow } from "./rows";

const ROW_BYTES: usize = 20;
/** Statistics of a piece: the sum of squares, then what `measured` has. */
const STATISTICS_BYTES: usize = 48;

// @ts-ignore: decorator
@inline
function addressOf(table: usize, column: u32): usize {
  return load<u32>(table + 4 + (<usize>column << 2));
}

/** Copies the `n` pieces of a table from a column to `to`, one behind the other. */
export function gatherPieces(to: usize, table: usize, column: u32, n: u32): void {
  for (; n > 0; n--) {
    const bytes = load<u32>(table);
    copyRow(to, addressOf(table, column), bytes);
    to += bytes;
    table += ROW_BYTES;
  }
}

/** Copies what lies one behind the other at `from` to the `n` pieces of a table in a column. */
export function scatterPieces(table: usize, column: u32, from: usize, n: u32): void {
  for (; n > 0; n--) {
    const bytes = load<u32>(table);
    copyRow(addressOf(table, column), from, bytes);
    from += bytes;
    table += ROW_BYTES;
  }
}

/** Sets the bytes of the `n` pieces of a table in a column to 0. */
export function clearPieces(table: usize, column: u32, n: u32): void {
  for (; n > 0; n--) {
    memory.fill(addressOf(table, column), 0, load<u32>(table));
    table += ROW_BYTES;
  }
}

// @ts-ignore: decorator
@inline
function measureType(dtype: u32, pointer: usize, n: u32): f64 {
  if (dtype == 4) return measureF32(pointer, n);
  if (dtype == 5) return measureF64(pointer, n);
  if (dtype == 0) return measureI32(pointer, n);
  if (dtype == 1) return measureU32(pointer, n);
  if (dtype == 2) return measureI64(pointer, n);
  if (dtype == 3) return measureU64(pointer, n);
  return dtype == 8 ? measureI8(pointer, n) : measureU8(pointer, n);
}

/** The power of two of the bytes of an element. */
// @ts-ignore: decorator
@inline
function shiftOf(dtype: u32): usize {
  if (dtype == 2 || dtype == 3 || dtype == 5) return 3;
  return dtype < 6 ? 2 : 0;
}

/**
 * Measures `n` runs of elements that follow each other; `counts` has their lengths, `dtype` is the number of their
 * type, not of half floats. Writes for each the sum of squares and the five results of `measured`.
 */
export function measurePieces(
  results: usize, pointer: usize, counts: usize, n: u32, dtype: u32,
): void {
  const shift = shiftOf(dtype);
  for (; n > 0; n--) {
    const count = load<u32>(counts);
    store<f64>(results, measureType(dtype, pointer, count));
    for (let i: u32 = 0; i < 5; i++) store<f64>(results + 8 + (<usize>i << 3), measured(i));
    pointer += <usize>count << shift;
    counts += 4;
    results += STATISTICS_BYTES;
  }
}
