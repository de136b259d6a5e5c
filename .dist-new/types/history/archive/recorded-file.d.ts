import { type Position } from "../../protocol/index.ts";
import type { Cut } from "../points.ts";
import { type HistorySource } from "../source.ts";
import { type ArchiveFacts, type ShardFiles } from "./archive-layout.ts";
/** The part of a history that is recorded. */
export interface RecordingSpan {
    /** Position in each shard from which the recording can be replayed. */
    readonly from: Cut;
    /** Last record in each shard. */
    readonly to: Cut;
}
/** Result of {@link writeRecording}. */
export interface Recording {
    readonly bytes: number;
    readonly records: number;
    readonly shards: readonly {
        readonly shard: number;
        readonly from: Position;
        readonly to: Position;
    }[];
}
/** Options of {@link writeRecording}. */
export interface RecordingOptions {
    readonly signal: AbortSignal;
    /** Called now and then with the number of records written, of those to write. */
    readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}
/**
 * Writes a span of a history into one file: for each shard the newest snapshot at or before its beginning
 * and the records after it. The file appears whole or not at all.
 * @throws HISTORY_LOST, JOURNAL_DAMAGED if a record of the span is not kept; BAD_VALUE if the span ends
 * before it begins; SNAPSHOT_DAMAGED, DISK_FULL, IO; what the source throws; the reason of the signal.
 */
export declare function writeRecording(path: string, source: HistorySource, { from, to }: RecordingSpan, { signal, onProgress }: RecordingOptions): Promise<Recording>;
/** Contents of a recorded file. */
export interface ReadRecording {
    readonly facts: ArchiveFacts;
    readonly shards: readonly ShardFiles[];
}
/** Reads a recorded file once, and checks every byte of it. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export declare function readRecording(path: string): Promise<ReadRecording>;
//# sourceMappingURL=recorded-file.d.ts.map