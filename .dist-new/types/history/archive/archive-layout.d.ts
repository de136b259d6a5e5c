import { type Position } from "../../protocol/index.ts";
import type { JobFacts, JournalSpan, KeptSnapshot } from "../source.ts";
import type { JobFrame } from "./frames.ts";
/** Place of a part of an archive: a segment, or a snapshot. */
interface PartPlace {
    readonly path: string;
    /** Offset at which it begins in a recorded file; undefined if it has a file of its own. */
    readonly offset?: number;
}
/** A segment: consecutive records, or consecutive messages of a tape. */
export interface SegmentFile extends PartPlace {
    readonly generation: number;
    readonly firstSeq: number;
    /** Last sequence; undefined while the segment is being written. */
    readonly lastSeq: number | undefined;
    /** The run that writes it; undefined once it is complete. */
    readonly run: number | undefined;
}
/** A file that says which records the archive lacks. */
export interface GapFile extends JournalSpan, PartPlace {
}
/** A manifest and the pieces that no earlier snapshot has. */
export interface SnapshotFile extends Position, PartPlace {
    /** Sequence of the manifest in the snapshot stream. */
    readonly storedSeq: number;
}
/** Files of an archive about one shard. They are listed again on each call: an archiver may add to a directory. */
export interface ShardFiles {
    /** Lists the segments of the journal, by generation and contents, ascending. */
    readonly journal: () => Promise<readonly SegmentFile[]>;
    /** Lists the gaps of the journal, in the same order. */
    readonly gaps: () => Promise<readonly GapFile[]>;
    /** Lists the segments of the tape, in the same order. */
    readonly tape: () => Promise<readonly SegmentFile[]>;
    /** Lists the snapshots in the order in which they were stored. */
    readonly snapshots: () => Promise<readonly SnapshotFile[]>;
}
/** Returns the directory of a shard's segments. */
export declare function journalDirectory(archive: string, shard: number): string;
/** Returns the directory of the segments of a shard's tape. */
export declare function tapeDirectory(archive: string, shard: number): string;
/** Returns the directory of a shard's snapshots. */
export declare function snapshotDirectory(archive: string, shard: number): string;
/** Returns the files of a shard in the directory of an archive. */
export declare function directoryFiles(archive: string, shard: number): ShardFiles;
/** Returns the path of a complete segment. */
export declare function segmentPath(directory: string, { generation, firstSeq, lastSeq }: JournalSpan): string;
/** Returns the path of a segment that a run is writing. No other run writes a file of this name. */
export declare function openSegmentPath(directory: string, { generation, seq }: Position, run: number): string;
/** Returns the path of a snapshot. */
export declare function snapshotPath(directory: string, { generation, seq }: Position, storedSeq: number): string;
/** Lists the segments in a directory, by generation and contents, ascending; none if it is not there. */
export declare function listSegments(directory: string): Promise<SegmentFile[]>;
/**
 * Notes in the directory of a shard's segments which records the archive lacks.
 * @throws DISK_FULL, IO.
 */
export declare function writeGap(directory: string, facts: ArchiveFacts, shard: number, gap: JournalSpan): Promise<void>;
/** Checks that the file of a gap says what its name says. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export declare function checkGap({ path, generation, firstSeq, lastSeq }: GapFile, shard: number, { archive }: ArchiveFacts): Promise<void>;
/** Lists the snapshots in a directory in the order in which they were stored; none if it is not there. */
export declare function listSnapshots(directory: string): Promise<SnapshotFile[]>;
/** Facts of the job of an archive, and the archive's identity. */
export interface ArchiveFacts extends JobFacts {
    /** Differs from that of every other archive. */
    readonly archive: string;
}
/**
 * Reads the facts of the archive in a directory.
 * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
 */
export declare function readArchiveFacts(directory: string): Promise<ArchiveFacts>;
/**
 * Reads the facts of the archive in a directory; makes an empty archive of `job` where there is nothing.
 * @throws BAD_ARCHIVE if it is of another job, or the directory holds something else; DISK_FULL, IO.
 */
export declare function openArchive(directory: string, job: JobFacts): Promise<ArchiveFacts>;
/** Makes the first frame of every file of an archive. */
export declare function jobFrame({ job, shards, synchronization, archive }: ArchiveFacts): JobFrame;
/** Checks that two histories are of one job. @throws BAD_ARCHIVE, which names the first by `path`. */
export declare function checkSameJob(path: string, archived: JobFacts, job: JobFacts): void;
/** Reads the facts of the archive from the first frame of a file. @throws BAD_ARCHIVE if it is another frame. */
export declare function requireJob(path: string, offset: number, frame: {
    readonly kind: string;
}): JobFrame;
/**
 * Returns the snapshots by generation and record, ascending; of several of one record only the one stored last: a
 * take-over commits the newest again.
 */
export declare function uniqueSnapshots(snapshots: readonly KeptSnapshot[]): KeptSnapshot[];
export {};
//# sourceMappingURL=archive-layout.d.ts.map