import { PserverError } from "../errors.js";
// Batches, batched reads and their answers carry what they say of many blocks in columns: arrays of little-endian
// numbers, one for each entry, in their tensor bytes. Every column begins at a multiple of 8 bytes from the first
// tensor byte and is followed by zeros up to the next one. So whoever has the tensor bytes at a multiple of 8 reads
// columns in place.
/** Where columns begin: at multiples of this many bytes. */
export const COLUMN_ALIGN_BYTES = 8;
const UINT32_BYTES = 4;
const FLOAT64_BYTES = 8;
/** Returns the bytes of a column, or of one block's values in an answer, with the zeros behind them. */
export function paddedBytes(bytes) {
    return Math.ceil(bytes / COLUMN_ALIGN_BYTES) * COLUMN_ALIGN_BYTES;
}
/** Returns the bytes of a column of `count` uint32 numbers, zeros included. */
export function uint32ColumnBytes(count) {
    return paddedBytes(count * UINT32_BYTES);
}
/** Returns the bytes of a column of `count` float64 numbers. */
export function float64ColumnBytes(count) {
    return count * FLOAT64_BYTES;
}
/** Reads columns one after the other. The caller has checked that the bytes are as many as the columns take. */
export class ColumnReader {
    #data;
    #at = 0;
    /** `data` are all tensor bytes of a message, at any address. */
    constructor(data) {
        this.#data = data;
    }
    /** Reads `count` uint32 numbers: a view, or a copy where the bytes are not aligned. @throws BAD_MESSAGE */
    uint32(count) {
        const { buffer, byteOffset } = this.#aligned(count * UINT32_BYTES);
        return new Uint32Array(buffer, byteOffset, count);
    }
    /** Reads `count` float64 numbers, as {@link uint32} does. */
    float64(count) {
        const { buffer, byteOffset } = this.#aligned(count * FLOAT64_BYTES);
        return new Float64Array(buffer, byteOffset, count);
    }
    /** Reads bytes: always a view. @throws BAD_MESSAGE if what follows up to the next column is not zero. */
    bytes(count) {
        const start = this.#at;
        const end = start + count;
        const next = start + paddedBytes(count);
        for (let at = end; at < next; at++) {
            if (this.#data[at] === 0)
                continue;
            const text = "tensor bytes: expected zeros after a column; received others";
            throw new PserverError("BAD_MESSAGE", text);
        }
        this.#at = next;
        return this.#data.subarray(start, end);
    }
    #aligned(count) {
        const bytes = this.bytes(count);
        // A copy even of a Buffer, whose own `slice` shares memory.
        return bytes.byteOffset % COLUMN_ALIGN_BYTES === 0 ? bytes : new Uint8Array(bytes);
    }
}
/** Writes columns one after the other into the tensor bytes of a message. */
export class ColumnWriter {
    #data;
    #at = 0;
    constructor(data) {
        this.#data = data;
    }
    /** Writes a column, with zeros behind it; does nothing for undefined. */
    put(column) {
        if (column === undefined)
            return;
        const { buffer, byteOffset, byteLength } = column;
        this.place(byteLength).set(new Uint8Array(buffer, byteOffset, byteLength));
    }
    /** Returns the place of `count` bytes that the caller writes, and zeroes what follows up to the next column. */
    place(count) {
        const start = this.#at;
        this.#at = start + paddedBytes(count);
        this.#data.fill(0, start + count, this.#at);
        return this.#data.subarray(start, start + count);
    }
}
/** Returns the bytes of the columns of parts; 0 for undefined. */
export function partColumnsBytes(entries, totals) {
    if (totals === undefined)
        return 0;
    const rowBytes = uint32ColumnBytes(entries) + uint32ColumnBytes(totals.rows);
    if (totals.inner === undefined)
        return rowBytes;
    return rowBytes + uint32ColumnBytes(entries) + uint32ColumnBytes(totals.inner);
}
/** Reads the columns of parts: how many rows, how many offsets, the rows, the offsets. @throws BAD_MESSAGE */
export function readPartColumns(reader, entries, totals) {
    if (totals === undefined)
        return undefined;
    const rows = reader.uint32(entries);
    const inner = totals.inner === undefined ? undefined : reader.uint32(entries);
    const rowList = reader.uint32(totals.rows);
    const innerList = totals.inner === undefined ? undefined : reader.uint32(totals.inner);
    return { rows, inner, rowList, innerList };
}
/** Writes the columns of parts; nothing for undefined. */
export function writePartColumns(writer, parts) {
    if (parts === undefined)
        return;
    writer.put(parts.rows);
    writer.put(parts.inner);
    writer.put(parts.rowList);
    writer.put(parts.innerList);
}
/** Returns the lengths of the lists of parts. */
export function partTotals(parts) {
    return parts && { rows: parts.rowList.length, inner: parts.innerList?.length };
}
/** Returns the lists of entries one after the other, as a column has them. */
export function joinNumbers(lists) {
    const all = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
    let at = 0;
    for (const list of lists) {
        all.set(list, at);
        at += list.length;
    }
    return all;
}
/** Names an entry for messages. */
export function entryLabel(entry) {
    return `entry ${entry}`;
}
/**
 * Checks that the numbers of a column add up to a total, and that none is below `least`.
 * @param first number of the first entry of the column.
 * @throws BAD_LENGTH, naming the entry where one is at fault.
 */
export function checkTotal(column, expected, what, { first = 0, least = 1 } = {}) {
    let sum = 0;
    for (let i = 0; i < column.length; i++) {
        const value = column[i];
        sum += value;
        if (value < least || sum > expected) {
            const most = expected - (sum - value);
            throw new PserverError("BAD_LENGTH", `${entryLabel(first + i)}: ${what}: expected ${least} to ${most}; received ${value}`, { entry: first + i, expected: most, received: value });
        }
    }
    if (sum === expected)
        return;
    throw new PserverError("BAD_LENGTH", `${what}: expected ${expected} in all; received ${sum}`, {
        expected,
        received: sum,
    });
}
//# sourceMappingURL=columns.js.map