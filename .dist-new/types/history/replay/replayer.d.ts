import { type Position } from "../../protocol/index.ts";
import type { Cut } from "../points.ts";
import type { HistorySource } from "../source.ts";
import { type ShardVerification } from "../verify.ts";
import { type ChangeCounts, type FoldChanges } from "../what-if.ts";
import { LocalReplayedShard, ReplayedModel, type ReplayedShard } from "./replayed-model.ts";
/** Called now and then with the number of records of a shard that are folded, of those to fold. */
export type OnShardProgress = (shard: number, doneRecords: number, totalRecords: number) => void;
/** Result of a verification, and the shard at its end; undefined if damage hides it. */
export interface VerifiedShard {
    readonly verification: ShardVerification;
    readonly replayed: ReplayedShard | undefined;
}
/** Changes with which a shard is folded, and the position after which they hold. */
export interface WhatIf {
    readonly changes: FoldChanges;
    readonly from: Position | undefined;
}
/** A shard that was folded with changes, and how many records were changed. */
export interface WhatIfShard {
    readonly replayed: ReplayedShard;
    readonly counts: ChangeCounts;
}
/** Rebuilds shards, in this thread or in others. */
export interface Replayer {
    /** Number of threads that it can keep busy. */
    readonly threads: number;
    /** Rebuilds a shard; @throws as `replayShard`. */
    replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard>;
    /** Folds all that is kept of a shard, from a position on; @throws as `verifyShard`. */
    verify(shard: number, from: Position | undefined, onProgress?: OnShardProgress): Promise<VerifiedShard>;
    /** Rebuilds a shard from changed records; @throws as `foldWhatIf`. */
    foldWhatIf(shard: number, to: Position, whatIf: WhatIf, onProgress?: OnShardProgress): Promise<WhatIfShard>;
    /** Frees the shards that were rebuilt. */
    close(): Promise<void>;
}
/** Rebuilds shards in this thread. */
export declare class LocalReplayer implements Replayer {
    #private;
    readonly threads = 1;
    /** `source` stays the caller's. */
    constructor(source: HistorySource, signal: AbortSignal);
    replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<LocalReplayedShard>;
    verify(shard: number, from: Position | undefined, onProgress?: OnShardProgress): Promise<{
        verification: ShardVerification;
        replayed: LocalReplayedShard | undefined;
    }>;
    foldWhatIf(shard: number, to: Position, whatIf: WhatIf, onProgress?: OnShardProgress): Promise<{
        replayed: LocalReplayedShard;
        counts: ChangeCounts;
    }>;
    close(): Promise<void>;
}
/** Adds up the progress of several shards. */
export declare class ProgressSum {
    #private;
    constructor(onProgress: (doneRecords: number, totalRecords: number) => void);
    /** Notes the progress of a shard, and reports the sum. */
    readonly note: (shard: number, doneRecords: number, totalRecords: number) => void;
}
/** Options of {@link replayModel}. */
export interface ReplayModelOptions {
    /** Only these shards; by default all. */
    readonly shards?: readonly number[];
    /** Called with the number of records folded in all shards, of those to fold as far as that is known. */
    readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}
/**
 * Rebuilds the model at a cut, as many shards at once as the replayer has threads. After a failure no
 * further shard is begun.
 * @throws as `replayShard`.
 */
export declare function replayModel(replayer: Replayer, cut: Cut, { shards, onProgress }?: ReplayModelOptions): Promise<ReplayedModel>;
/** The part of a history that is folded with changes. */
export interface WhatIfSpan {
    /** Records after this cut are changed; by default all that lead to the end. */
    readonly from: Cut | undefined;
    readonly to: Cut;
}
/**
 * Rebuilds the model as it would have been at the end of a span if its records had been others.
 * @throws as `foldWhatIf`.
 */
export declare function modelWhatIf(replayer: Replayer, { from, to }: WhatIfSpan, changes: FoldChanges, onProgress?: (doneRecords: number, totalRecords: number) => void): Promise<{
    model: ReplayedModel;
    counts: ChangeCounts;
}>;
//# sourceMappingURL=replayer.d.ts.map