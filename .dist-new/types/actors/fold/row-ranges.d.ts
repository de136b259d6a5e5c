import type { BlockRows, PartIndex } from "../../protocol/messages/parts.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { BlockActor } from "./block-actor.ts";
import { type Payload } from "./elements.ts";
/**
 * Changes elements of columns.
 * @param columns addresses of the elements in each column.
 * @param incoming address of the elements of the record.
 * @param count updates that the rows have had; 0 if the caller has not asked for counts.
 */
export type ColumnVisit = (columns: readonly number[], incoming: number, n: number, count: number) => void;
/** Changes the `n` rows of a list in place; `list` is its address. See {@link ColumnVisit} for the rest. */
export type RowVisit = (incoming: number, list: number, n: number) => void;
/** Walks over ranges of the row lists of one block. It uses the scratch of the memory for the current range. */
export declare class RowRanges {
    #private;
    /** Rows of a range at most. */
    readonly rowsMax: number;
    /** {@link fitsRange} must hold for the bytes of a row. */
    constructor(memory: ShardMemory, rowElements: number, elementBytes: number);
    /** Whether rows are short enough to be gathered for a read or the close of a step. */
    static isShort(rowBytes: number): boolean;
    /** Whether rows that a kernel can change in place are short enough for a range. */
    static fitsRange(rowBytes: number): boolean;
    /** Makes the `n` rows from place `first` of a list on the current range. Without a list, places are row numbers. */
    take(list: Uint32Array | undefined, first: number, n: number): void;
    /** Address of the row numbers of the current range. */
    get list(): number;
    /** Reads the last row number of the current range, which has `n` rows. */
    last(n: number): number;
    /** Copies the `n` rows of the current range from a column to an address. */
    gather(to: number, column: number, n: number): void;
    /**
     * Changes the `n` rows of the current range in these columns, at most four. The incoming elements are at the
     * beginning of the scratch. With `counts`, the address of the rows' update counts, `visit` is called once for the
     * rows of each count, else once for all rows. `visitRows`, if given, is called instead for rows that are not worth
     * gathering or whose counts mostly differ; rows that are not short need it.
     */
    change(columns: readonly number[], counts: number | undefined, n: number, visit: ColumnVisit, visitRows?: RowVisit): void;
}
/**
 * Copies a list of rows to the scratch, range by range, and calls `visit` with the address and length of each range.
 */
export declare function eachListRange(memory: ShardMemory, list: Uint32Array, visit: (pointer: number, n: number) => void): void;
/** Elements of a block that a record changes, in one column or several that are changed together. */
export interface ColumnTarget {
    /** Division of the block into rows. */
    readonly rows: BlockRows;
    /** The elements; undefined for all. */
    readonly part: PartIndex | undefined;
    readonly elementBytes: number;
    /** Addresses of the columns, at most four: the values, and slots of the same length. */
    readonly columns: readonly number[];
    /** Address of the rows' update counts; set if the change of a row depends on its count. */
    readonly counts?: number | undefined;
    /** Changes rows with different counts in one call; undefined if there is no kernel for it. */
    readonly visitRows?: RowVisit | undefined;
}
/**
 * Calls `visit` for the elements of a payload, range by range, with the addresses of the block's elements that they
 * change. Every element is visited once; the elements of one visit have the same update count. Short rows that lie
 * apart are gathered before the visit and scattered after it.
 * @param shape called before a visit with the number of elements at the beginning of the scratch; may change them.
 */
export declare function eachColumn(memory: ShardMemory, target: ColumnTarget, payload: Payload, visit: ColumnVisit, shape?: (n: number) => void): void;
/** Visits contiguous ranges of a target in place. */
export declare class RangeWalk {
    #private;
    /** The memory must not grow while it is in use. */
    constructor(memory: ShardMemory, target: ColumnTarget);
    /** Visits `n` elements from `start` on; each visit covers neighbouring rows with the same update count. */
    visit(start: number, n: number, incoming: number, visit: ColumnVisit): void;
}
/** Returns the address of the update counts of a block's rows; undefined unless the parameter is sparse. */
export declare function rowCounts(block: BlockActor): number | undefined;
/** Returns the count after one more update. */
export declare function nextCount(count: number): number;
/** Counts one update of these rows, or of all rows; does nothing unless the parameter is sparse. */
export declare function countUpdate(memory: ShardMemory, block: BlockActor, list: Uint32Array | undefined): void;
//# sourceMappingURL=row-ranges.d.ts.map