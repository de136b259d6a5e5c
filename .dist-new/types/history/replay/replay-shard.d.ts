import { type RecordAnswer, Shard } from "../../actors/fold/shard.ts";
import { type JobSubjects, type Position } from "../../protocol/index.ts";
import { type ReplayBase, type ShardHistory, type TimedRecord } from "../source.ts";
/** Sees each record as it is folded. Both calls must leave the shard as it is. */
export interface FoldVisitor {
    /** Called before a record is folded. */
    before?(record: TimedRecord, shard: Shard): void;
    /** Called after it, with the answer to a trainer's record. */
    after?(record: TimedRecord, shard: Shard, settled: RecordAnswer | undefined): void;
}
/** Options of {@link foldRecords}. */
export interface FoldOptions {
    readonly signal: AbortSignal;
    readonly visitor?: FoldVisitor;
    /** Returns the record to fold in place of this one, undefined to leave it out; by default the record itself. */
    readonly edit?: (record: TimedRecord) => TimedRecord | undefined;
    /** Called now and then with the last record folded. */
    readonly onFolded?: (seq: number) => void;
}
/**
 * Folds the records of a shard's history after its own up to `to` into it, as a host would.
 * @throws JOURNAL_DAMAGED, HISTORY_LOST if a record is missing; UNKNOWN_RULES, TOO_LARGE as the fold; what
 * the source throws; the reason of the signal.
 */
export declare function foldRecords(shard: Shard, history: ShardHistory, to: Position, options: FoldOptions): Promise<void>;
/**
 * Returns the result of `fold` for a record; undefined, with the shard unchanged, if the record's bytes do not match
 * their checksum.
 */
export declare function foldUnlessDamaged<Result>(record: TimedRecord, fold: (record: TimedRecord) => Result): {
    readonly result: Result;
} | undefined;
/** Reads a record a second time: if it was not damaged in transit, every host folds it as unreadable. */
export declare function readAgain(history: ShardHistory, { generation }: Position, record: TimedRecord, signal: AbortSignal): Promise<TimedRecord>;
/** Lets other work of the event loop run. */
export declare function nextTurn(): Promise<void>;
/** Options of {@link replayShard}. */
export interface ReplayOptions extends Omit<FoldOptions, "onFolded"> {
    readonly subjects: JobSubjects;
    /** Called now and then with the number of records folded, of those to fold. */
    readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}
/**
 * Rebuilds a shard as it was right after a record: loads the newest snapshot before it, or an older one if
 * that is damaged, and folds the records after the snapshot by the code that hosts fold with.
 * @throws HISTORY_LOST if the position lies before what is kept, SNAPSHOT_DAMAGED if no snapshot before it
 * can be loaded, JOURNAL_DAMAGED if a record is missing or has changed; UNKNOWN_RULES, TOO_LARGE as the fold; what the
 * source throws; the reason of the signal.
 */
export declare function replayShard(history: ShardHistory, to: Position, options: ReplayOptions): Promise<Shard>;
/**
 * Rebuilds a shard as the nearest readable snapshot at or before a position has it.
 * @throws as {@link replayShard}.
 */
export declare function loadBase(history: ShardHistory, to: Position, { subjects, signal }: Pick<ReplayOptions, "subjects" | "signal">): Promise<Shard>;
/** Loads the shard at a place from which it can be rebuilt. @throws SNAPSHOT_DAMAGED, UNKNOWN_RULES. */
export declare function shardAt(history: ShardHistory, { snapshot }: ReplayBase, subjects: JobSubjects): Promise<Shard>;
//# sourceMappingURL=replay-shard.d.ts.map