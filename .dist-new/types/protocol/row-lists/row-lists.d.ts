import { type TensorData } from "../dtypes.ts";
/** Returns whether each number is greater than the one before. */
export declare function isAscending(numbers: ArrayLike<number>): boolean;
/** Non-negative whole numbers up to 2^53: a dimension may be longer than 2^32. */
export type Numbers = Float64Array;
/** Numbers without repeats. */
export interface Distinct {
    /** Ascending, each once. */
    readonly values: Numbers;
    /** For each of the original numbers, in their order, its place among `values`. */
    readonly places: Uint32Array;
}
/** Sorts numbers and removes repeats. The numbers are not copied if they are ascending. */
export declare function distinct(numbers: Numbers): Distinct;
/** Returns the numbers from 0 to `count` - 1. */
export declare function countTo(count: number): Uint32Array;
/** Rows of a tensor, with the sum that each is added to. */
export interface PlacedRows {
    readonly values: TensorData;
    readonly rowElements: number;
    /** For each row the number of its sum. */
    readonly places: Uint32Array;
    /** Number of sums; each has a row. */
    readonly sums: number;
}
/** Adds rows up, in order and in their element type; integers wrap around. */
export declare function sumByPlace(rows: PlacedRows): TensorData;
//# sourceMappingURL=row-lists.d.ts.map