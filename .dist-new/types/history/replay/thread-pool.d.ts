import type { BlockHeader } from "../../actors/fold/block-actor.ts";
import { type Position } from "../../protocol/index.ts";
import type { HistoryPlace } from "../source.ts";
import type { ShardVerification } from "../verify.ts";
import type { ChangeCounts } from "../what-if.ts";
import type { ReplayedShard } from "./replayed-model.ts";
import type { OnShardProgress, Replayer, VerifiedShard, WhatIf, WhatIfShard } from "./replayer.ts";
/** Setup of a replay thread. */
export interface ThreadSetup {
    readonly place: HistoryPlace;
}
/** A shard that a thread has rebuilt and keeps. */
export interface KeptShard {
    /** Number by which the thread knows it. */
    readonly replay: number;
    readonly position: Position;
    readonly blocks: readonly BlockHeader[];
}
/** Requests to a replay thread. Its progress is the number of records folded, of those to fold. */
export interface ReplayCalls {
    replay(task: {
        readonly shard: number;
        readonly to: Position;
    }): KeptShard;
    verify(task: {
        readonly shard: number;
        readonly from: Position | undefined;
    }): {
        readonly verification: ShardVerification;
        readonly kept: KeptShard | undefined;
    };
    foldWhatIf(task: {
        readonly shard: number;
        readonly to: Position;
        readonly whatIf: WhatIf;
    }): {
        readonly kept: KeptShard;
        readonly counts: ChangeCounts;
    };
    advance(task: {
        readonly replay: number;
        readonly to: Position;
    }): KeptShard;
    digest(replay: number): string;
    stateDigest(replay: number): string;
    blockDigest(block: {
        readonly replay: number;
        readonly parameter: string;
        readonly index: number;
    }): string | undefined;
    slot(slot: {
        readonly replay: number;
        readonly parameter: string;
        readonly index: number;
        readonly slot: number;
    }): Uint8Array<ArrayBuffer>;
    free(replay: number): void;
}
/**
 * Rebuilds shards on worker threads, one shard at a time on each. A thread opens the history by itself and keeps the
 * shards that it has rebuilt; their blocks are then requested one by one.
 */
export declare class ThreadPool implements Replayer {
    #private;
    readonly threads: number;
    private constructor();
    /**
     * Starts threads for so many shards, at most one for each processor. An abort of the signal ends all of
     * them. The caller closes the pool.
     */
    static start(place: HistoryPlace, shards: number, signal: AbortSignal): ThreadPool;
    replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard>;
    verify(shard: number, from: Position | undefined, onProgress?: OnShardProgress): Promise<VerifiedShard>;
    foldWhatIf(shard: number, to: Position, whatIf: WhatIf, onProgress?: OnShardProgress): Promise<WhatIfShard>;
    close(): Promise<void>;
}
//# sourceMappingURL=thread-pool.d.ts.map