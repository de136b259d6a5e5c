import { DTYPES, encodedBytes } from "../../../protocol/dtypes.js";
// Small blocks, and rows of blocks, lie apart in the shard's memory. A table of their addresses lets kernels gather
// many of them into contiguous columns in the scratch, where one call of a rule changes all, and scatter them back.
/** Bytes of elements that are changed together: all columns of them stay in a near cache. */
export const PIECES_BYTES_MAX = 32 * 1024;
/** Bytes of the longest piece: to gather a longer one costs more than a call for it alone. */
const PIECE_BYTES_MAX = 4096;
/** Pieces of a table at most. */
export const PIECES_MAX = 4096;
/** Columns at most: the values and three slots. */
const COLUMNS_MAX = 4;
const ROW_WORDS = 1 + COLUMNS_MAX;
// Offsets in the scratch. Incoming elements are at its beginning.
const COLUMNS = PIECES_BYTES_MAX;
const TABLE = COLUMNS + COLUMNS_MAX * PIECES_BYTES_MAX;
const ZEROS = TABLE + PIECES_MAX * ROW_WORDS * 4;
const ZEROS_BYTES = 4;
/** Bytes that the pieces of a table may have together for {@link PieceTable.gatherAll}. */
export const GATHERED_BYTES_MAX = TABLE;
const WIDEN = { bfloat16: "widenBf16", float16: "widenF16" };
/** Copies `elements` elements of a run, from a place on, to the beginning of the scratch, decoded. */
export function stagePieces(memory, run, from, elements) {
    const wireBytes = encodedBytes(run.dtype, run.encoding, 1);
    const { scratch } = memory;
    const bytes = run.values.subarray(from * wireBytes, (from + elements) * wireBytes);
    // Encoded and widened elements end at the same address, so they can be widened in place.
    const encoded = scratch + elements * (DTYPES[run.dtype].bytes - wireBytes);
    memory.bytes(encoded, bytes.length).set(bytes);
    if (run.encoding !== undefined) {
        memory.kernels[WIDEN[run.encoding]](scratch, encoded, elements);
    }
}
/** A table of pieces in the scratch of a shard's memory. It is filled anew for each use. */
export class PieceTable {
    #memory;
    #words = new Uint32Array(0);
    #pieces = 0;
    constructor(memory) {
        this.#memory = memory;
    }
    /** Number of pieces. */
    get pieces() {
        return this.#pieces;
    }
    /** Empties the table. The memory must not grow until the pieces have been scattered. */
    clear() {
        const { scratch } = this.#memory;
        const { buffer, byteOffset } = this.#memory.bytes(scratch + TABLE, PIECES_MAX * ROW_WORDS * 4);
        this.#words = new Uint32Array(buffer, byteOffset, PIECES_MAX * ROW_WORDS);
        this.#pieces = 0;
    }
    /** Begins a piece of so many bytes, a multiple of 4. */
    add(bytes) {
        this.#words[this.#pieces * ROW_WORDS] = bytes;
        this.#pieces += 1;
    }
    /** Adds a piece of 4 bytes of zeros to the first column. */
    addZeros() {
        const { scratch } = this.#memory;
        this.#memory.bytes(scratch + ZEROS, ZEROS_BYTES).fill(0);
        this.add(ZEROS_BYTES);
        this.at(0, scratch + ZEROS);
    }
    /** Sets the address in a column of the piece that was added last. */
    at(column, address) {
        this.#words[(this.#pieces - 1) * ROW_WORDS + 1 + column] = address;
    }
    /** Copies the pieces of a column behind each other, and returns their address. */
    gather(column) {
        const to = this.#memory.scratch + COLUMNS + column * PIECES_BYTES_MAX;
        this.#gatherTo(to, column);
        return to;
    }
    /** Copies the pieces of the first column behind each other to the beginning of the scratch; returns their address. */
    gatherAll() {
        const { scratch } = this.#memory;
        this.#gatherTo(scratch, 0);
        return scratch;
    }
    #gatherTo(to, column) {
        const { scratch, kernels } = this.#memory;
        kernels.gatherPieces(to, scratch + TABLE, column, this.#pieces);
    }
    /** Copies a column that was gathered back to the pieces. */
    scatter(column) {
        this.scatterFrom(this.#memory.scratch + COLUMNS + column * PIECES_BYTES_MAX, column);
    }
    /** Copies what lies behind each other at an address to the pieces of a column. */
    scatterFrom(from, column) {
        const { scratch, kernels } = this.#memory;
        kernels.scatterPieces(scratch + TABLE, column, from, this.#pieces);
    }
    /** Sets the pieces of a column to 0. */
    zero(column) {
        const { scratch, kernels } = this.#memory;
        kernels.clearPieces(scratch + TABLE, column, this.#pieces);
    }
}
/** Returns how many pieces of elements of a type fit beside each other, if each has so many elements. */
export function fitsPiece(dtype, elements) {
    return elements * DTYPES[dtype].bytes <= PIECE_BYTES_MAX;
}
//# sourceMappingURL=pieces.js.map