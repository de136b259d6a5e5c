import { type PserverError } from "../../protocol/index.ts";
import type { JournalSpan, TimedRecord } from "../source.ts";
import { type ArchiveFacts, type SegmentFile } from "./archive-layout.ts";
import { RunningTotals } from "./container.ts";
import type { RecordFrame, TapeFrame } from "./frames.ts";
/** Joins spans that continue or cover each other; returns them by generation and record, ascending. */
export declare function joinSpans(spans: readonly JournalSpan[]): JournalSpan[];
/** Returns the records that spans lack between two that they have, and before the first of a first generation. */
export declare function gapsBetween(spans: readonly JournalSpan[]): JournalSpan[];
/** A frame of a segment: a record of a journal, or a message of a tape. */
export type SegmentFrame = RecordFrame | TapeFrame;
/** Kind of a segment's frames. */
export type SegmentKind = SegmentFrame["kind"];
/** The frames of one kind of segment. */
export type FrameOf<Kind extends SegmentKind> = Extract<SegmentFrame, {
    readonly kind: Kind;
}>;
/** Place to which a frame of a segment belongs. */
export interface SegmentPlace {
    readonly shard: number;
    /** Generation; 0 in a tape, which has no generations. */
    readonly generation: number;
    /** Sequence of a record; of a message of a tape, its number in the archive. */
    readonly seq: number;
}
/** Returns the place to which a frame of a segment belongs. */
export declare function placeOf(frame: SegmentFrame): SegmentPlace;
/** Contents of a segment that is being written. */
export interface SegmentTail<Kind extends SegmentKind> {
    /** Last sequence; `firstSeq` − 1 if the segment is empty. */
    readonly lastSeq: number;
    /** Whether all of it was written. */
    readonly isEnded: boolean;
    /** Sums of the whole frames. */
    readonly sums: RunningTotals;
    /** The last frame before the end. */
    readonly last: FrameOf<Kind> | undefined;
    /** Why it cannot be read further; undefined if it can, or only ends within a frame. */
    readonly damage: PserverError | undefined;
}
/** Reads the records of a segment of a journal, as {@link readFrames} does. */
export declare function readSegment(segment: SegmentFile, shard: number, facts: ArchiveFacts): AsyncGenerator<readonly TimedRecord[]>;
/**
 * Reads the frames of a segment, some at a time; the whole ones if it is being written.
 * @throws BAD_ARCHIVE, BAD_VERSION, IO.
 */
export declare function readFrames<Kind extends SegmentKind>(kind: Kind, segment: SegmentFile, shard: number, { archive }: ArchiveFacts): AsyncGenerator<readonly FrameOf<Kind>[]>;
/**
 * Returns the contents of a segment, which may be one that is being written, up to the first damage.
 * @throws BAD_ARCHIVE if the preamble is damaged, BAD_VERSION, IO.
 */
export declare function readTail<Kind extends SegmentKind>(kind: Kind, segment: SegmentFile, shard: number, { archive }: ArchiveFacts): Promise<SegmentTail<Kind>>;
/** Cuts batches to the records after `afterSeq` up to `toSeq`. @throws JOURNAL_DAMAGED if one is missing. */
export declare function sliceRecords(batches: AsyncIterable<readonly TimedRecord[]>, shard: number, afterSeq: number, toSeq: number): AsyncGenerator<readonly TimedRecord[], number>;
/** Returns a record as a segment holds it. */
export declare function toRecordFrame(shard: number, generation: number, { seq, timeMs, subject, payload }: TimedRecord): RecordFrame;
/** Dependencies of {@link SegmentWriter}. */
export interface SegmentWriterDeps {
    /** Directory of the segments, made if it is not there. */
    readonly directory: string;
    readonly facts: ArchiveFacts;
    /** Bytes at which a segment is completed. */
    readonly segmentBytes: number;
}
/**
 * Appends the records of a journal, or the messages of a tape, to the segments of one shard. After an error it must be closed; what was synced
 * stays readable.
 */
export declare class SegmentWriter {
    #private;
    constructor(deps: SegmentWriterDeps);
    /** Spans of the frames that were appended. */
    get spans(): readonly JournalSpan[];
    /**
     * Appends consecutive frames of one generation. Where they do not follow those before, a new segment begins.
     * @throws DISK_FULL, IO.
     */
    append(frames: readonly SegmentFrame[]): Promise<void>;
    /** Waits until all is on disk. @throws DISK_FULL, IO. */
    sync(): Promise<void>;
    /** Completes the segment; after an error, only cuts off the part of a frame at its end. */
    close(): Promise<void>;
}
//# sourceMappingURL=segment.d.ts.map