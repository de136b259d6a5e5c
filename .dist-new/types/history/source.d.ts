import type { NotedChecksum } from "../actors/fold/journal-checksum.ts";
import { type JournalRecord } from "../actors/fold/journal-record.ts";
import type { UpdateVerb } from "../actors/journal/describe-record.ts";
import type { PieceRef, StoredManifest } from "../actors/journal/manifest.ts";
import { type Watermark } from "../actors/journal/watermark.ts";
import { type Fields, type Message, type OwnerVerb, type Position, PserverError, type ShardKnowledge, type Synchronization } from "../protocol/index.ts";
import type { EntryProblem } from "../protocol/messages/shard-knowledge.ts";
import type { ConnectionSettings } from "../transport/connection.ts";
/** Where the history of a job is kept: plain data, so that worker threads can open it, too. */
export type HistoryPlace = {
    readonly kind: "broker";
    readonly connection: ConnectionSettings;
    readonly job: string;
    /** Directory of an archive, or a recorded file, that is read together with the broker, as one history. */
    readonly archive?: string;
} | {
    readonly kind: "archive";
    readonly archive: string;
};
/** A record of a journal with the time at which the broker stored it. */
export interface TimedRecord extends JournalRecord {
    /** Milliseconds since 1970, with fractions. Only reports depend on it; the fold does not. */
    readonly timeMs: number;
}
/** Records of one generation of a journal that can be read one after the other. */
export interface JournalSpan {
    readonly generation: number;
    readonly firstSeq: number;
    /** `firstSeq` − 1 if the span is empty. */
    readonly lastSeq: number;
}
/** A sequence that no journal reaches. */
export declare const END_SEQ: number;
/** A message of a shard's tape as the broker stored it. */
export interface StoredTapeMessage {
    /** Sequence in the stream of the job's tape. */
    readonly seq: number;
    /** When the broker stored it, in milliseconds since 1970. */
    readonly timeMs: number;
    readonly data: Uint8Array;
}
/** The message with which the reading of a tape begins. */
export type TapeStart = 
/** The first message that was stored at this time or later. */
{
    readonly kind: "time";
    readonly timeMs: number;
}
/** The message with this sequence, or the next one. */
 | {
    readonly kind: "message";
    readonly seq: number;
};
/** A committed snapshot; its pieces are read by {@link ShardHistory.piece}. */
export interface KeptSnapshot extends StoredManifest {
    /** When its manifest was stored, in milliseconds since 1970. */
    readonly timeMs: number;
}
/** The history of one shard. */
export interface ShardHistory {
    readonly shard: number;
    /** Lists the records that can be read, by generation, ascending. */
    spans(): Promise<readonly JournalSpan[]>;
    /**
     * Lists the records that are known to be missing, by generation, ascending: those that were trimmed before an
     * archiver had copied them. Absent in a source that has all records between the first and the last one.
     */
    gaps?(): Promise<readonly JournalSpan[]>;
    /** Lists the snapshots whose manifests are kept, by generation and record, ascending. */
    snapshots(): Promise<readonly KeptSnapshot[]>;
    /**
     * Reads the message that a manifest or a snapshot's state refers to.
     * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
     */
    piece(ref: PieceRef): Promise<Uint8Array>;
    /**
     * Reads the records after `after` up to `toSeq` of the same generation, in order and without a gap, some
     * at a time.
     * @throws JOURNAL_DAMAGED if one is damaged or lost, HISTORY_LOST if one was trimmed; TIMEOUT, NO_BROKER and the like
     * if it cannot be read now; ABORTED.
     */
    read(after: Position, toSeq: number, signal: AbortSignal): AsyncIterable<readonly TimedRecord[]>;
    /**
     * Reads how far its owners have folded it, and what the journal was then; undefined if they have noted nothing yet.
     * Absent in a source that keeps no watermarks.
     * Undefined as well for one that is damaged.
     */
    watermark?(): Promise<Watermark | undefined>;
    /**
     * Reads the messages of the shard's tape from `start` on, oldest first; some of them may repeat lines of others.
     * None if the job has no tape. Absent in a source that keeps none.
     * @throws BAD_ARCHIVE for a damaged file, after the messages in all others; TIMEOUT, NO_BROKER and the like.
     */
    readTape?(start: TapeStart, signal: AbortSignal): AsyncIterable<StoredTapeMessage>;
    /**
     * Whether the oldest messages of the tape may have been dropped at its limit: then lines before its first message
     * are not damage. Absent in a source that keeps no tape.
     */
    isTapeTrimmed?(): Promise<boolean>;
    /**
     * Returns the sequence of the last record of a span that was stored up to `timeMs`, in milliseconds since 1970;
     * `firstSeq` − 1 if all were stored later.
     */
    lastUpTo(span: JournalSpan, timeMs: number): Promise<number>;
}
/** Facts of a job that every source knows. */
export interface JobFacts {
    readonly job: string;
    readonly shards: number;
    readonly synchronization: Synchronization;
}
/**
 * The history of a job, wherever it is kept: in the broker, in an archive (a directory or a recorded file), or in
 * an archive whose later part is in the broker. All commands of the debugger read through it.
 */
export interface HistorySource extends JobFacts {
    /** Name for people: `broker`, or the path of the archive. */
    readonly name: string;
    /** Returns the history of a shard. @throws BAD_VALUE for a shard that the job does not have. */
    shard(shard: number): ShardHistory;
    /**
     * Compares the entries of the job's bucket with what shards know, by their numbers, and returns those with problems;
     * absent in a source that keeps none.
     */
    compareEntries?(known: ReadonlyMap<number, ShardKnowledge>): Promise<readonly EntryProblem[]>;
    /**
     * Asks the owner of a shard; absent where no host can be reached.
     * @throws NO_OWNER if none answers, or the error in the reply.
     */
    askOwner?(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message>;
    close(): Promise<void>;
}
/** Sender and contents of a record, in short. */
export interface RecordSummary {
    readonly verb: UpdateVerb;
    /** Sender with session and number; undefined for a host's record. */
    readonly sender: {
        readonly trainer: string;
        readonly session: number;
        readonly n: number;
    } | undefined;
}
/** Summarizes a record of a job; undefined if its subject is not that of a record. */
export declare function summarizeRecord(job: string, { subject, payload }: TimedRecord): RecordSummary | undefined;
/** Checks the number of a shard. @throws BAD_VALUE for a shard that the job does not have. */
export declare function checkShard({ job, shards }: JobFacts, shard: number): void;
/**
 * Makes the error for a position of a shard that the kept history does not reach back to. `oldest`: the first
 * position that it does reach, if any, which was stored at `oldestMs`, if that is known.
 */
export declare function historyLost(shard: number, wanted: string, oldest: Position | undefined, oldestMs?: number): PserverError;
/** Makes the error for a record that is one of a shard's known {@link ShardHistory.gaps}. */
export declare function recordsNotKept(shard: number, { generation, firstSeq: from, lastSeq: to }: JournalSpan): PserverError;
/**
 * Reads the record at a position; undefined if the source has none there, or has trimmed it.
 * @throws as `ShardHistory.read` does, but HISTORY_LOST.
 */
export declare function recordAt(history: Pick<ShardHistory, "read">, { generation, seq }: Position, signal: AbortSignal): Promise<TimedRecord | undefined>;
/** Positions of one generation that a shard can be rebuilt at: all from `firstSeq` to `lastSeq`. */
export interface RebuildableRange {
    readonly generation: number;
    readonly firstSeq: number;
    readonly lastSeq: number;
}
/** A place from which a shard can be rebuilt: a snapshot, or the empty shard before record 1. */
export interface ReplayBase extends Position {
    /** The snapshot; undefined for the empty shard. */
    readonly snapshot: KeptSnapshot | undefined;
}
/** A list of what a source holds of a shard. */
export interface Inventory {
    readonly shard: number;
    readonly spans: readonly JournalSpan[];
    /** Records that are known to be missing, by generation, ascending. */
    readonly gaps: readonly JournalSpan[];
    readonly snapshots: readonly KeptSnapshot[];
}
/** Lists what a source holds of a shard. @throws TIMEOUT, DENIED and the like. */
export declare function takeInventory(history: ShardHistory): Promise<Inventory>;
/**
 * Returns the last position up to a time; undefined if it is before all that is kept, or among records that are
 * missing.
 * @throws errors of the source.
 */
export declare function positionAt(history: Pick<ShardHistory, "lastUpTo">, inventory: Pick<Inventory, "spans" | "snapshots">, timeMs: number): Promise<Position | undefined>;
/** Returns all places from which a shard can be rebuilt, by generation and sequence, ascending. */
export declare function basesOf({ spans, snapshots }: Inventory): ReplayBase[];
/**
 * Returns the checksums of a generation that were noted when it was folded before, ascending: by its snapshots, and
 * by the watermark of its owners.
 */
export declare function notedIn({ snapshots }: Inventory, watermark: Watermark | undefined, generation: number): NotedChecksum[];
/** Returns the span that holds the record at a position; undefined if none does. */
export declare function spanWith(spans: readonly JournalSpan[], { generation, seq }: Position): JournalSpan | undefined;
/** Returns the last record that follows a position without a gap; that of the position if none does. */
export declare function connectedUpTo({ spans }: Inventory, { generation, seq }: Position): number;
/**
 * Whether a position is the end of the gap after a record: hosts skip records that were never written, and make a
 * snapshot right after them.
 */
export declare function isEndOfGap(spans: readonly JournalSpan[], { generation, seq }: Position, endSeq: number): boolean;
/** Returns the positions that can be rebuilt, by generation and sequence, ascending; the ranges do not overlap. */
export declare function rebuildableRanges(inventory: Inventory): RebuildableRange[];
/**
 * Returns the places from which a position can be rebuilt, the nearest first.
 * @throws HISTORY_LOST if all are later, or a record between is known to be missing; JOURNAL_DAMAGED if one is missing
 * for another reason.
 */
export declare function basesBefore(inventory: Inventory, to: Position): [ReplayBase, ...ReplayBase[]];
/** Returns the oldest position that can be rebuilt; undefined if none can. */
export declare function oldestOf(inventory: Inventory): Position | undefined;
/** Returns the newest position that is kept, whether or not it can be rebuilt; undefined if nothing is kept. */
export declare function newestOf({ spans, snapshots }: Inventory): Position | undefined;
/**
 * Returns the oldest position from which records lead to another one of its generation; that one itself if none do.
 */
export declare function startOf(inventory: Inventory, to: Position): Position;
//# sourceMappingURL=source.d.ts.map