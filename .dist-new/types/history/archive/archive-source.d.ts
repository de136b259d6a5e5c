import type { PieceRef } from "../../actors/journal/manifest.ts";
import { type Position, type Synchronization } from "../../protocol/index.ts";
import { type HistorySource, type JournalSpan, type KeptSnapshot, type ShardHistory, type StoredTapeMessage, type TapeStart, type TimedRecord } from "../source.ts";
import { type ArchiveFacts, type ShardFiles } from "./archive-layout.ts";
import type { TapeFrame } from "./frames.ts";
/** Returns a message as all sources give it. */
export declare function toTapeMessage({ seq, timeMs, data }: TapeFrame): StoredTapeMessage;
/** The history of one shard in an archive, also while an archiver adds to it. */
export declare class ArchiveShard implements ShardHistory {
    #private;
    readonly shard: number;
    constructor(files: ShardFiles, facts: ArchiveFacts, shard: number);
    spans(): Promise<JournalSpan[]>;
    snapshots(): Promise<KeptSnapshot[]>;
    piece(ref: PieceRef): Promise<Uint8Array>;
    read({ generation, seq }: Position, toSeq: number, signal: AbortSignal): AsyncGenerator<readonly TimedRecord[]>;
    readTape(start: TapeStart, signal: AbortSignal): AsyncGenerator<StoredTapeMessage, void, undefined>;
    lastUpTo({ generation, firstSeq, lastSeq }: JournalSpan, timeMs: number): Promise<number>;
}
/** The history in an archive: in a directory, also while an archiver adds to it, or in a recorded file. */
export declare class ArchiveSource implements HistorySource {
    #private;
    readonly name: string;
    readonly facts: ArchiveFacts;
    constructor(name: string, facts: ArchiveFacts, filesOf: (shard: number) => ShardFiles);
    /**
     * Opens the archive in a directory, or a recorded file, of which every byte is checked.
     * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
     */
    static open(path: string): Promise<ArchiveSource>;
    get job(): string;
    get shards(): number;
    get synchronization(): Synchronization;
    /** Returns the files of a shard. @throws BAD_VALUE for a shard that the job does not have. */
    files(shard: number): ShardFiles;
    shard(shard: number): ArchiveShard;
    close(): Promise<void>;
}
//# sourceMappingURL=archive-source.d.ts.map