import type { Fields } from "../codec.ts";
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
/**
 * Most numbers of an index. A message cannot hold as many; the bound keeps sizes that are computed from
 * counts exact.
 */
export declare const PART_NUMBERS_MAX: number;
/** Where a block lies in its parameter. */
export interface BlockExtent {
    readonly shape: readonly number[];
    readonly start: number;
    readonly count: number;
}
/** Returns whether a block consists of whole rows of its parameter's axis 0. */
export declare function isWholeRows({ shape, start, count }: BlockExtent): boolean;
/**
 * Returns the rows of a block: those of the parameter's axis 0 if it is cut between rows, else one row, the
 * whole block.
 */
export declare function blockRows(place: BlockExtent): BlockRows;
/** Returns the number of elements in a part of a block. */
export declare function partElements(part: PartCounts, { rowElements }: BlockRows): number;
/** Returns the counts of an index. */
export declare function partCounts({ rows, inner }: PartIndex): PartCounts;
/** Returns the bytes before the elements of a part. */
export declare function partIndexBytes(counts: PartCounts): number;
/** Returns the bytes before the elements of a part of this block, with a packed index. */
export declare function packedIndexBytes(counts: PartCounts, block: BlockRows): number;
/** Writes an index to the beginning of tensor bytes; returns the number of bytes written. */
export declare function writePartIndex(target: Uint8Array, index: PartIndex): number;
/** Writes an index as {@link writePartIndex} does, packed for this block. */
export declare function writePackedIndex(target: Uint8Array, index: PartIndex, block: BlockRows): number;
/**
 * Reads the index at the beginning of tensor bytes. Returns a copy of it, and a view of the bytes after it.
 * @throws BAD_LENGTH if the bytes end within it.
 * @throws BAD_INDEX unless the numbers are ascending and within the block.
 */
export declare function readPartIndex(counts: PartCounts, data: Uint8Array, block: BlockRows): PartIndex & {
    readonly elements: Uint8Array;
};
/**
 * Reads a packed index as {@link readPartIndex} does.
 * @throws BAD_LENGTH, BAD_INDEX as {@link readPartIndex}; BAD_INDEX also if the padding is not zero.
 */
export declare function readPackedIndex(counts: PartCounts, data: Uint8Array, block: BlockRows): PartIndex & {
    readonly elements: Uint8Array;
};
/**
 * Reads the index that is the data of a request; returns a copy.
 * @throws BAD_LENGTH unless it has as many bytes as the counts say, BAD_INDEX as {@link readPartIndex}.
 */
export declare function readPartRequest(counts: PartCounts, data: Uint8Array, block: BlockRows): PartIndex;
/** Returns the counts as a message carries them: `[rows]` or `[rows, inner]`. */
export declare function partEntry({ rows, inner }: PartCounts): readonly number[];
/** Reads the counts in a message's entry `part`; undefined without one. @throws BAD_MESSAGE */
export declare function parsePartEntry(fields: Fields): PartCounts | undefined;
//# sourceMappingURL=parts.d.ts.map