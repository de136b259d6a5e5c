import type { ArchivedShard } from "../../actors/journal/archivers.ts";
import { type Position, type PserverError } from "../../protocol/index.ts";
import { type JournalSpan, type ShardHistory } from "../source.ts";
import { type ArchiveFacts } from "./archive-layout.ts";
import { SegmentWriter } from "./segment.ts";
/** Dependencies of {@link RecordCopier}. */
export interface RecordCopierDeps {
    readonly source: Pick<ShardHistory, "shard" | "read">;
    readonly writer: Pick<SegmentWriter, "append" | "sync">;
    /** Spans that the archive has already. */
    readonly archived: readonly JournalSpan[];
    /** Called when more records are on disk. */
    readonly onCopied: () => void;
    /** Called for a record that is missing in the source; those before it are copied. */
    readonly onDamaged: (error: PserverError) => void;
}
/** Copies the records of one shard into an archive. */
export declare class RecordCopier {
    #private;
    constructor(deps: RecordCopierDeps);
    /** The newest record on disk; undefined before the first. */
    get newest(): Position | undefined;
    /** Bytes of the payloads copied. */
    get bytes(): number;
    /** Returns how many records of spans are not on disk yet. */
    behind(spans: readonly JournalSpan[]): number;
    /**
     * Copies the records of a span after those that are on disk. Ends early if they are trimmed while it copies, or if
     * one is missing.
     * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
     */
    copy(span: JournalSpan, signal: AbortSignal): Promise<void>;
    /** Whether a span ends before a record that was copied: then its journal is another, or was cut off. */
    hasShrunk({ generation, lastSeq }: JournalSpan): boolean;
}
/** Dependencies of {@link SnapshotCopier}. */
export interface SnapshotCopierDeps {
    readonly source: ShardHistory;
    readonly directory: string;
    readonly facts: ArchiveFacts;
    /** Called for a snapshot that is damaged in the source; it is left out. */
    readonly onDamaged: (error: PserverError) => void;
}
/** Copies the snapshots of one shard into an archive, in the order in which they were stored. */
export declare class SnapshotCopier {
    #private;
    private constructor();
    /** Goes on after the last snapshot in the archive. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
    static open(deps: SnapshotCopierDeps): Promise<SnapshotCopier>;
    /** The record of the newest snapshot that was copied; undefined before the first. */
    get newest(): Position | undefined;
    /** Bytes of the files written. */
    get bytes(): number;
    /**
     * Copies the snapshots that came after the last one. Leaves out those that are removed in between.
     * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
     */
    copy(signal: AbortSignal): Promise<void>;
}
/** Dependencies of {@link TapeCopier}. */
export interface TapeCopierDeps {
    readonly source: Pick<ShardHistory, "shard" | "readTape">;
    readonly writer: Pick<SegmentWriter, "append" | "sync">;
    readonly directory: string;
    readonly facts: ArchiveFacts;
    /** Called for a segment that is damaged: messages after the damage are copied again. */
    readonly onDamaged: (error: PserverError) => void;
}
/** Copies the tape of one shard into an archive, from its beginning on: it is never trimmed. */
export declare class TapeCopier {
    #private;
    private constructor();
    /**
     * Goes on after the last message in the archive, whose segments are all complete.
     * @throws BAD_VERSION, IO.
     */
    static open(deps: TapeCopierDeps): Promise<TapeCopier>;
    /** Number of messages that the archive has, including those in damaged segments. */
    get messages(): number;
    /** Bytes of the messages copied. */
    get bytes(): number;
    /**
     * Copies the messages that came after the last one.
     * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
     */
    copy(signal: AbortSignal): Promise<void>;
}
/** Dependencies of {@link ShardArchiver}. */
export interface ShardArchiverDeps {
    readonly source: ShardHistory;
    readonly directory: string;
    readonly facts: ArchiveFacts;
    /** Bytes at which a segment is completed. */
    readonly segmentBytes: number;
    /** Called when more is on disk. */
    readonly onCopied: (shard: number, archived: ArchivedShard) => void;
    /** Called for a part that is damaged, in the archive or in the source; the rest is copied. */
    readonly onDamaged: (error: PserverError) => void;
}
/** Progress of one shard. */
export interface ShardProgress {
    readonly shard: number;
    /** The newest record that is archived; undefined before the first. */
    readonly record: Position | undefined;
    /** The record of the newest archived snapshot; undefined before the first. */
    readonly snapshot: Position | undefined;
    /** Number of records that were in the source when it was last listed and are not archived yet. */
    readonly behindRecords: number;
    /** Records that are missing between those of the archive, or before them. */
    readonly missing: readonly JournalSpan[];
    /** Messages of the shard's tape that are archived. */
    readonly tapeMessages: number;
    /** Bytes copied by this archiver. */
    readonly copiedBytes: number;
}
/** Archives one shard. */
export declare class ShardArchiver {
    #private;
    private constructor();
    /**
     * Tidies up after an archiver that died, and goes on after its last record.
     * @throws BAD_ARCHIVE, BAD_VERSION, DISK_FULL, IO.
     */
    static open(deps: ShardArchiverDeps): Promise<ShardArchiver>;
    /** The newest archived positions, for the hosts. */
    get archived(): ArchivedShard;
    /** Its progress. */
    get progress(): ShardProgress;
    /**
     * Copies what is in the source and not yet in the archive.
     * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; errors of the source; the reason
     * of `signal`.
     */
    copy(signal: AbortSignal): Promise<void>;
    /** Completes the segments that are being written. @throws DISK_FULL, IO. */
    close(): Promise<void>;
}
//# sourceMappingURL=shard-archiver.d.ts.map