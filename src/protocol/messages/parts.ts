import type { Fields } from "../codec.ts";
import { bytesOf } from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import { integerField, listField } from "../fields.ts";
import { isAscending } from "../row-lists/row-lists.ts";
import { elementCount } from "../tensor.ts";

// A part of a block is some of its rows, and of these rows all elements or some. It travels as
// tensor bytes: the row numbers, the offsets in a row if not all elements are meant, zeros up to a
// multiple of 8, then the elements, row by row. Numbers are little-endian, ascending, uint32. In batch
// records and batched reads the lists stand in columns.

/** A block as rows. */
export interface BlockRows {
  readonly rows: number;
  readonly rowElements: number;
}

/** Counts of a part's index, as the header of the message states them. */
export interface PartCounts {
  readonly rows: number;
  /** Absent: the whole rows. */
  readonly inner?: number;
}

/**
 * Elements of a block, as rows and offsets in a row: each of these offsets in each of these rows. Rows are
 * numbered within the block.
 */
export interface PartIndex {
  readonly rows: Uint32Array;
  /** Absent: the whole rows. */
  readonly inner?: Uint32Array;
}

const NUMBER_BYTES = 4;
const ALIGN_BYTES = 8;
/**
 * Most numbers of an index. A message cannot hold as many; the bound keeps sizes that are computed from
 * counts exact.
 */
export const PART_NUMBERS_MAX = 2 ** 31;

/** Where a block lies in its parameter. */
export interface BlockExtent {
  readonly shape: readonly number[];
  readonly start: number;
  readonly count: number;
}

/** Returns whether a block consists of whole rows of its parameter's axis 0. */
export function isWholeRows({ shape, start, count }: BlockExtent): boolean {
  const rowElements = elementCount(shape) / (shape[0] ?? 1);
  return start % rowElements === 0 && count % rowElements === 0;
}

/**
 * Returns the rows of a block: those of the parameter's axis 0 if it is cut between rows, else one row, the
 * whole block.
 */
export function blockRows(place: BlockExtent): BlockRows {
  const { shape, count } = place;
  if (!isWholeRows(place)) return { rows: 1, rowElements: count };
  const rowElements = elementCount(shape) / (shape[0] ?? 1);
  return { rows: count / rowElements, rowElements };
}

/** Returns the number of elements in a part of a block. */
export function partElements(part: PartCounts, { rowElements }: BlockRows): number {
  return part.rows * (part.inner ?? rowElements);
}

/** Returns the counts of an index. */
export function partCounts({ rows, inner }: PartIndex): PartCounts {
  return inner === undefined ? { rows: rows.length } : { rows: rows.length, inner: inner.length };
}

/** Returns the bytes before the elements of a part. */
export function partIndexBytes({ rows, inner = 0 }: PartCounts): number {
  return Math.ceil(((rows + inner) * NUMBER_BYTES) / ALIGN_BYTES) * ALIGN_BYTES;
}

/** Writes an index to the beginning of tensor bytes; returns the number of bytes written. */
export function writePartIndex(target: Uint8Array, index: PartIndex): number {
  const bytes = partIndexBytes(partCounts(index));
  const { rows, inner } = index;
  target.set(bytesOf(rows));
  if (inner !== undefined) target.set(bytesOf(inner), rows.length * NUMBER_BYTES);
  target.fill(0, (rows.length + (inner?.length ?? 0)) * NUMBER_BYTES, bytes);
  return bytes;
}

/**
 * Reads the index at the beginning of tensor bytes. Returns a copy of it, and a view of the bytes after it.
 * @throws BAD_LENGTH if the bytes end within it.
 * @throws BAD_INDEX unless the numbers are ascending and within the block.
 */
export function readPartIndex(
  counts: PartCounts,
  data: Uint8Array,
  block: BlockRows,
): PartIndex & { readonly elements: Uint8Array } {
  const bytes = partIndexBytes(counts);
  if (data.length < bytes) {
    throw new PserverError(
      "BAD_LENGTH",
      `part: expected at least ${bytes} bytes of index; received ${data.length}`,
      { expected: bytes, received: data.length },
    );
  }
  const elements = data.subarray(bytes);
  const rows = readNumbers(data, 0, counts.rows);
  if (counts.inner === undefined) {
    checkPartIndex({ rows }, block);
    return { rows, elements };
  }
  const inner = readNumbers(data, counts.rows * NUMBER_BYTES, counts.inner);
  checkPartIndex({ rows, inner }, block);
  return { rows, inner, elements };
}

/** @throws BAD_INDEX unless the numbers of an index are ascending and within the block. */
export function checkPartIndex({ rows, inner }: PartIndex, block: BlockRows): void {
  checkNumbers(rows, block.rows, "rows");
  if (inner !== undefined) checkNumbers(inner, block.rowElements, "offsets in a row");
}

/**
 * Reads the index that is the data of a request; returns a copy.
 * @throws BAD_LENGTH unless it has as many bytes as the counts say, BAD_INDEX as {@link readPartIndex}.
 */
export function readPartRequest(counts: PartCounts, data: Uint8Array, block: BlockRows): PartIndex {
  const { rows, inner, elements } = readPartIndex(counts, data, block);
  if (elements.length > 0) {
    const expected = partIndexBytes(counts);
    throw new PserverError(
      "BAD_LENGTH",
      `part: expected ${expected} bytes of index; received ${data.length}`,
      { expected, received: data.length },
    );
  }
  return inner === undefined ? { rows } : { rows, inner };
}

/** Copies `count` numbers, because within a message they are not aligned. */
function readNumbers(data: Uint8Array, start: number, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  bytesOf(numbers).set(data.subarray(start, start + count * NUMBER_BYTES));
  return numbers;
}

/** @throws BAD_INDEX unless the numbers are ascending and below a limit. */
function checkNumbers(numbers: Uint32Array, below: number, what: string): void {
  if (isAscending(numbers) && (numbers[numbers.length - 1] ?? 0) < below) return;
  let least = 0;
  for (const number of numbers) {
    if (number < least || number >= below) {
      throw new PserverError(
        "BAD_INDEX",
        `part: expected ${what} from 0 to ${below - 1} in ascending order; received ${number} ` +
          (number >= below ? "" : `after ${least - 1}`).trim(),
        { expected: below, received: number },
      );
    }
    least = number + 1;
  }
}

/** Returns the counts as a message carries them: `[rows]` or `[rows, inner]`. */
export function partEntry({ rows, inner }: PartCounts): readonly number[] {
  return inner === undefined ? [rows] : [rows, inner];
}

/** Reads the counts in a message's entry `part`; undefined without one. @throws BAD_MESSAGE */
export function parsePartEntry(fields: Fields): PartCounts | undefined {
  if (fields["part"] === undefined) return undefined;
  const [rows, inner] = listField(fields, "part", 2);
  const entry = { rows, inner };
  const counts = { rows: integerField(entry, "rows", 1, PART_NUMBERS_MAX) };
  if (inner === undefined) return counts;
  return { ...counts, inner: integerField(entry, "inner", 1, PART_NUMBERS_MAX) };
}
