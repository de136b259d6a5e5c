import { bytesOf } from "../dtypes.js";
import { PserverError } from "../errors.js";
import { integerField, listField } from "../fields.js";
import { isAscending } from "../row-lists/row-lists.js";
import { elementCount } from "../tensor.js";
const NUMBER_BYTES = 4;
const PACKED_NUMBERS_MAX = 2 ** 16;
const ALIGN_BYTES = 8;
/**
 * Most numbers of an index. A message cannot hold as many; the bound keeps sizes that are computed from
 * counts exact.
 */
export const PART_NUMBERS_MAX = 2 ** 31;
/** Returns whether a block consists of whole rows of its parameter's axis 0. */
export function isWholeRows({ shape, start, count }) {
    const rowElements = elementCount(shape) / (shape[0] ?? 1);
    return start % rowElements === 0 && count % rowElements === 0;
}
/**
 * Returns the rows of a block: those of the parameter's axis 0 if it is cut between rows, else one row, the
 * whole block.
 */
export function blockRows(place) {
    const { shape, count } = place;
    if (!isWholeRows(place))
        return { rows: 1, rowElements: count };
    const rowElements = elementCount(shape) / (shape[0] ?? 1);
    return { rows: count / rowElements, rowElements };
}
/** Returns the number of elements in a part of a block. */
export function partElements(part, { rowElements }) {
    return part.rows * (part.inner ?? rowElements);
}
/** Returns the counts of an index. */
export function partCounts({ rows, inner }) {
    return inner === undefined ? { rows: rows.length } : { rows: rows.length, inner: inner.length };
}
/** Returns the bytes before the elements of a part. */
export function partIndexBytes(counts) {
    return indexBytes(counts, NUMBER_BYTES);
}
/** Returns the bytes before the elements of a part of this block, with a packed index. */
export function packedIndexBytes(counts, block) {
    return indexBytes(counts, packedNumberBytes(counts, block));
}
/** Writes an index to the beginning of tensor bytes; returns the number of bytes written. */
export function writePartIndex(target, index) {
    return writeIndex(target, index, NUMBER_BYTES);
}
/** Writes an index as {@link writePartIndex} does, packed for this block. */
export function writePackedIndex(target, index, block) {
    return writeIndex(target, index, packedNumberBytes(partCounts(index), block));
}
/**
 * Reads the index at the beginning of tensor bytes. Returns a copy of it, and a view of the bytes after it.
 * @throws BAD_LENGTH if the bytes end within it.
 * @throws BAD_INDEX unless the numbers are ascending and within the block.
 */
export function readPartIndex(counts, data, block) {
    return readIndex(counts, data, block, NUMBER_BYTES);
}
/**
 * Reads a packed index as {@link readPartIndex} does.
 * @throws BAD_LENGTH, BAD_INDEX as {@link readPartIndex}; BAD_INDEX also if the padding is not zero.
 */
export function readPackedIndex(counts, data, block) {
    const numberBytes = packedNumberBytes(counts, block);
    const read = readIndex(counts, data, block, numberBytes);
    const end = (counts.rows + (counts.inner ?? 0)) * numberBytes;
    for (let at = end; at < data.length - read.elements.length; at++) {
        if (data[at] === 0)
            continue;
        throw new PserverError("BAD_INDEX", "part: expected zeros after the index; received others");
    }
    return read;
}
/**
 * Reads the index that is the data of a request; returns a copy.
 * @throws BAD_LENGTH unless it has as many bytes as the counts say, BAD_INDEX as {@link readPartIndex}.
 */
export function readPartRequest(counts, data, block) {
    const { rows, inner, elements } = readPartIndex(counts, data, block);
    if (elements.length > 0) {
        const expected = partIndexBytes(counts);
        throw new PserverError("BAD_LENGTH", `part: expected ${expected} bytes of index; received ${data.length}`, { expected, received: data.length });
    }
    return inner === undefined ? { rows } : { rows, inner };
}
/**
 * Returns the bytes of each number of a packed index. They depend on the largest numbers that the block
 * allows, not on those in the index.
 */
function packedNumberBytes({ inner }, { rows, rowElements }) {
    const isNarrow = rows <= PACKED_NUMBERS_MAX && (inner === undefined || rowElements <= PACKED_NUMBERS_MAX);
    return isNarrow ? 2 : NUMBER_BYTES;
}
function indexBytes({ rows, inner = 0 }, numberBytes) {
    return Math.ceil(((rows + inner) * numberBytes) / ALIGN_BYTES) * ALIGN_BYTES;
}
function writeIndex(target, index, numberBytes) {
    const bytes = indexBytes(partCounts(index), numberBytes);
    const { rows, inner } = index;
    const rowsEnd = rows.length * numberBytes;
    writeNumbers(target, 0, rows, numberBytes);
    if (inner !== undefined)
        writeNumbers(target, rowsEnd, inner, numberBytes);
    const end = rowsEnd + (inner?.length ?? 0) * numberBytes;
    for (let at = end; at < bytes; at++)
        target[at] = 0;
    return bytes;
}
function readIndex(counts, data, block, numberBytes) {
    const bytes = indexBytes(counts, numberBytes);
    if (data.length < bytes) {
        throw new PserverError("BAD_LENGTH", `part: expected at least ${bytes} bytes of index; received ${data.length}`, { expected: bytes, received: data.length });
    }
    const elements = data.subarray(bytes);
    const rows = readNumbers(data, 0, counts.rows, numberBytes);
    checkNumbers(rows, block.rows, "rows");
    if (counts.inner === undefined)
        return { rows, elements };
    const inner = readNumbers(data, counts.rows * numberBytes, counts.inner, numberBytes);
    checkNumbers(inner, block.rowElements, "offsets in a row");
    return { rows, inner, elements };
}
/** Copies `count` numbers, because within a message they are not aligned. */
function readNumbers(data, start, count, numberBytes) {
    const numbers = new Uint32Array(count);
    if (numberBytes === NUMBER_BYTES) {
        bytesOf(numbers).set(data.subarray(start, start + count * NUMBER_BYTES));
        return numbers;
    }
    for (let i = 0, at = start; i < count; i++, at += 2) {
        numbers[i] = data[at] | (data[at + 1] << 8);
    }
    return numbers;
}
/** @throws BAD_INDEX unless the numbers are ascending and below a limit. */
function checkNumbers(numbers, below, what) {
    if (isAscending(numbers) && (numbers[numbers.length - 1] ?? 0) < below)
        return;
    let least = 0;
    for (const number of numbers) {
        if (number < least || number >= below) {
            throw new PserverError("BAD_INDEX", `part: expected ${what} from 0 to ${below - 1} in ascending order; received ${number} ` +
                (number >= below ? "" : `after ${least - 1}`).trim(), { expected: below, received: number });
        }
        least = number + 1;
    }
}
function writeNumbers(target, start, numbers, numberBytes) {
    if (numberBytes === NUMBER_BYTES) {
        target.set(bytesOf(numbers), start);
        return;
    }
    for (let i = 0, at = start; i < numbers.length; i++, at += 2) {
        const number = numbers[i];
        target[at] = number;
        target[at + 1] = number >>> 8;
    }
}
/** Returns the counts as a message carries them: `[rows]` or `[rows, inner]`. */
export function partEntry({ rows, inner }) {
    return inner === undefined ? [rows] : [rows, inner];
}
/** Reads the counts in a message's entry `part`; undefined without one. @throws BAD_MESSAGE */
export function parsePartEntry(fields) {
    if (fields["part"] === undefined)
        return undefined;
    const [rows, inner] = listField(fields, "part", 2);
    const entry = { rows, inner };
    const counts = { rows: integerField(entry, "rows", 1, PART_NUMBERS_MAX) };
    if (inner === undefined)
        return counts;
    return { ...counts, inner: integerField(entry, "inner", 1, PART_NUMBERS_MAX) };
}
//# sourceMappingURL=parts.js.map