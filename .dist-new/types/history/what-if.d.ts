import type { Shard } from "../actors/fold/shard.ts";
import { type JobSubjects, type Position } from "../protocol/index.ts";
import { type ReplayOptions } from "./replay/replay-shard.ts";
import { type ShardHistory, type TimedRecord } from "./source.ts";
/** Changes with which a history is folded: plain data, so that they can be passed to worker threads. */
export interface FoldChanges {
    /**
     * Trainers whose gradients, pushes and sets are left out; their inits and clocks stay, because others depend on
     * them.
     */
    readonly withoutTrainers: readonly string[];
    /** Records that are left out, each in one shard. */
    readonly withoutRecords: readonly (Position & {
        readonly shard: number;
    })[];
    /** Replaces the learning rate of every gradient, whatever the parameter's configuration says. */
    readonly learningRate?: number | undefined;
    /** Gradients of a larger L2 norm are scaled down to it. */
    readonly clipNorm?: number | undefined;
}
/** Numbers of records that were left out, and that were changed. */
export interface ChangeCounts {
    readonly leftOut: number;
    readonly changed: number;
}
/** Changes records of one shard before they are folded. */
export declare class RecordEditor {
    #private;
    /** `generation`: that of the records which it gets. */
    constructor(changes: FoldChanges, subjects: JobSubjects, shard: number, generation: number);
    get counts(): ChangeCounts;
    /**
     * Returns the record to fold in place of this one; undefined to leave it out. `shard`: the shard before the record.
     */
    edit(record: TimedRecord, shard: Shard): TimedRecord | undefined;
}
/** Options of {@link foldWhatIf}. */
export interface WhatIfOptions extends ReplayOptions {
    readonly changes: FoldChanges;
    /** Records up to this position are folded as they are; by default none. */
    readonly from?: Position | undefined;
}
/**
 * Rebuilds a shard as it would have been at a position if the records had been others, beginning with what
 * it was at `from`. Gradients stay those that trainers computed from the values that they really had.
 * @throws as `replayShard`.
 */
export declare function foldWhatIf(history: ShardHistory, to: Position, options: WhatIfOptions): Promise<{
    shard: Shard;
    counts: ChangeCounts;
}>;
//# sourceMappingURL=what-if.d.ts.map