import type { Fields } from "./codec.ts";
import { PserverError } from "./errors.ts";
import { integerField, listField } from "./fields.ts";
import { isAscending } from "./row-lists/ascending.ts";
import { elementCount } from "./tensor.ts";

// A part of a block is some of its rows, and of these rows all elements or some. It travels as
// tensor bytes: the row numbers, the offsets in a row if not all elements are meant, zeros up to a
// multiple of 8, then the elements, row by row. Numbers are uint32, little-endian, ascending.

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

/** Which elements of a block are meant: all rows × offsets in a row, numbered within the block. */
export interface PartIndex {
  readonly rows: Uint32Array;
  /** Absent: the whole rows. */
  readonly inner?: Uint32Array;
}

const NUMBER_BYTES = 4;
const ALIGN_BYTES = 8;
/** More than a message can hold; keeps sizes computed from the counts exact. */
const NUMBERS_MAX = 2 ** 31;

/** Where a block lies in its parameter. */
export interface BlockExtent {
  readonly shape: readonly number[];
  readonly start: number;
  readonly count: number;
}

/** Whether a block consists of whole rows of its parameter's axis 0. */
export function isWholeRows({ shape, start, count }: BlockExtent): boolean {
  const rowElements = elementCount(shape) / (shape[0] ?? 1);
  return start % rowElements === 0 && count % rowElements === 0;
}

/**
 * The rows of a block: those of the parameter's axis 0 if it is cut between rows, else one row, the
 * block itself.
 */
export function blockRows(place: BlockExtent): BlockRows {
  const { shape, count } = place;
  if (!isWholeRows(place)) return { rows: 1, rowElements: count };
  const rowElements = elementCount(shape) / (shape[0] ?? 1);
  return { rows: count / rowElements, rowElements };
}

/** Elements that a part has of a block. */
export function partElements(part: PartCounts, { rowElements }: BlockRows): number {
  return part.rows * (part.inner ?? rowElements);
}

/** The counts of an index. */
export function partCounts({ rows, inner }: PartIndex): PartCounts {
  return inner === undefined ? { rows: rows.length } : { rows: rows.length, inner: inner.length };
}

/** Bytes before the elements of a part. */
export function partIndexBytes({ rows, inner = 0 }: PartCounts): number {
  return Math.ceil(((rows + inner) * NUMBER_BYTES) / ALIGN_BYTES) * ALIGN_BYTES;
}

/** Writes an index to the beginning of tensor bytes; returns the number of bytes written. */
export function writePartIndex(target: Uint8Array, index: PartIndex): number {
  const bytes = partIndexBytes(partCounts(index));
  const { rows, inner = new Uint32Array(0) } = index;
  target.fill(0, (rows.length + inner.length) * NUMBER_BYTES, bytes);
  target.set(numberBytes(rows), 0);
  target.set(numberBytes(inner), rows.length * NUMBER_BYTES);
  return bytes;
}

/**
 * The index at the beginning of tensor bytes, copied, and the bytes after it, a view.
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
  const rows = readNumbers(data, 0, counts.rows, block.rows, "rows");
  if (counts.inner === undefined) return { rows, elements };
  const inner = readNumbers(data, counts.rows, counts.inner, block.rowElements, "offsets in a row");
  return { rows, inner, elements };
}

/**
 * The index that a request is the bytes of, copied.
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

function readNumbers(
  data: Uint8Array,
  first: number,
  count: number,
  below: number,
  what: string,
): Uint32Array {
  const numbers = new Uint32Array(count);
  const start = first * NUMBER_BYTES;
  numberBytes(numbers).set(data.subarray(start, start + count * NUMBER_BYTES));
  if (isAscending(numbers) && (numbers[count - 1] ?? 0) < below) return numbers;
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
  return numbers;
}

function numberBytes(numbers: Uint32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

/** The counts as a message carries them: `[rows]` or `[rows, inner]`. */
export function partEntry({ rows, inner }: PartCounts): readonly number[] {
  return inner === undefined ? [rows] : [rows, inner];
}

/** The counts in a message's entry `part`; undefined without one. @throws BAD_MESSAGE */
export function parsePartEntry(fields: Fields): PartCounts | undefined {
  if (fields["part"] === undefined) return undefined;
  const [rows, inner] = listField(fields, "part", 2);
  const entry = { rows, inner };
  const counts = { rows: integerField(entry, "rows", 1, NUMBERS_MAX) };
  if (inner === undefined) return counts;
  return { ...counts, inner: integerField(entry, "inner", 1, NUMBERS_MAX) };
}
