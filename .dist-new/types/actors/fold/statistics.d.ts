import type { ShardMemory } from "../kernel/shard-memory.ts";
import { type Payload } from "./elements.ts";
/** Statistics of the elements of an update; all but `nonFinite` cover the finite elements only. */
export interface Statistics {
    /** L2 norm: the root of a float64 sum that is made in a fixed order. */
    readonly norm: number;
    /** The least element; undefined if none is finite. */
    readonly min: number | undefined;
    readonly max: number | undefined;
    readonly mean: number | undefined;
    /** How many are zero. */
    readonly zeros: number;
    /** How many are NaN or infinite. */
    readonly nonFinite: number;
}
/** Measures the elements of a payload in one pass, in the scratch of the memory. */
export declare function measure(memory: ShardMemory, payload: Payload): Statistics;
/**
 * Measures like {@link measure}, but returns undefined where that throws: the fold must do the same with and without
 * an observer. Whoever describes the record measures it again and reports the error.
 */
export declare function measureIfPossible(memory: ShardMemory, payload: Payload): Statistics | undefined;
//# sourceMappingURL=statistics.d.ts.map