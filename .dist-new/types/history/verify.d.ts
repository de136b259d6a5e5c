import type { Shard } from "../actors/fold/shard.ts";
import { type Position, type WireError } from "../protocol/index.ts";
import { type ReplayOptions } from "./replay/replay-shard.ts";
import type { ReplayedShard } from "./replay/replayed-model.ts";
import { type HistorySource, type ShardHistory } from "./source.ts";
/** Result about one snapshot, or about the records after a position. */
export type VerifiedPlace = Position & ({
    readonly kind: "equal" | "different" | "first";
} | {
    readonly kind: "damaged" | "unreadable" | "given-up";
    readonly error: WireError;
});
/** Result about a shard. */
export interface ShardVerification {
    readonly shard: number;
    /** Number of records folded. */
    readonly records: number;
    /**
     * In order: snapshots that are `equal` to the fold, `different`, or `damaged`; the `first` of each part that
     * can be folded, which nothing before it can be compared with; positions after which the journal is
     * `unreadable`, or, in what the shard did not keep of a journal after a loss that was accepted, `given-up`. That
     * with which a generation begins is compared with the fold of the one before, up to the
     * record from which the shard went on.
     */
    readonly places: readonly VerifiedPlace[];
}
/** Options of {@link verifyShard}. */
export interface VerifyOptions extends ReplayOptions {
    /** The fold begins at the nearest snapshot at or before this position; by default at the oldest snapshot. */
    readonly from?: Position | undefined;
}
/** A shard that was folded. */
interface FoldedShard {
    readonly shard: Shard;
    readonly generation: number;
}
/**
 * Folds all that is kept of a shard, from its oldest snapshot on, and compares the fold with each later snapshot:
 * state, values and slots. After damage it goes on from the next snapshot.
 * @returns the findings, and the shard at the end of its newest journal; undefined if damage hides it.
 * @throws errors of the source if it cannot be read now; the reason of the signal.
 */
export declare function verifyShard(history: ShardHistory, options: VerifyOptions): Promise<{
    verification: ShardVerification;
    end: FoldedShard | undefined;
}>;
/** Whether nothing of a shard is damaged or different, apart from records that were given up. */
export declare function isSound({ places }: ShardVerification): boolean;
/** Result of the comparison of the fold with the host that serves the shard. */
export type ServedVerification = {
    readonly kind: "equal";
    readonly position: Position;
    readonly blocks: number;
} | {
    readonly kind: "different";
    readonly position: Position;
    /** What differs: `state`, or blocks as `"name" block 3`. */
    readonly what: readonly string[];
} | {
    readonly kind: "unknown";
    readonly error: WireError;
};
/**
 * Compares the state and every block of a shard with what its owner holds, each at the position that the
 * owner has reached when it answers: the shard follows the journal up to there, so that trainers may train.
 * @throws JOURNAL_DAMAGED and the like if the journal cannot be followed; errors of the owner.
 */
export declare function verifyServed(source: Pick<HistorySource, "askOwner">, shard: ReplayedShard): Promise<ServedVerification>;
export {};
//# sourceMappingURL=verify.d.ts.map