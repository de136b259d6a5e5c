import { type ArchivedShard } from "../../actors/journal/archivers.ts";
import { type KvBucket } from "../../actors/journal/kv-bucket.ts";
import { type PserverError } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { HistorySource } from "../source.ts";
import { type ArchiveFacts } from "./archive-layout.ts";
import { type ShardProgress } from "./shard-archiver.ts";
/** Options of {@link Archiver}. */
export interface ArchiverOptions {
    /** The history that is copied; it stays the caller's. */
    readonly source: HistorySource;
    /** Directory of the archive, made if it is not there. No other archiver may use it at the same time. */
    readonly directory: string;
    /** Bytes at which a segment is completed; {@link SEGMENT_BYTES} by default. */
    readonly segmentBytes?: number;
    /** Called when more is on disk. */
    readonly onCopied?: (shard: number, archived: ArchivedShard) => void;
    /** Called for a part that is damaged, in the archive or in the source; the rest is copied. */
    readonly onDamaged?: (error: PserverError) => void;
}
/** Copies the history of a job into a directory, again and again, from where it stopped. */
export declare class Archiver {
    #private;
    readonly facts: ArchiveFacts;
    private constructor();
    /**
     * Opens the archive, or makes it, and tidies up after an archiver that died.
     * @throws BAD_ARCHIVE if the directory holds the archive of another job, BAD_VERSION, DISK_FULL, IO.
     */
    static open(options: ArchiverOptions): Promise<Archiver>;
    /** The newest archived positions, by shard. */
    get archived(): ArchivedShard[];
    /** Progress of the shards, by their numbers. */
    get progress(): ShardProgress[];
    /**
     * Copies what is in the source and not yet in the archive. After an error, everything copied before it is in the
     * archive.
     * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; errors of the source; the reason
     * of `signal`.
     */
    copy(signal: AbortSignal): Promise<void>;
    /** Completes the segments that are being written. To be called once. @throws DISK_FULL, IO. */
    close(): Promise<void>;
}
/** Dependencies of {@link ArchiverRegistration}. */
export interface RegistrationDeps {
    readonly bucket: Pick<KvBucket, "read" | "create" | "update" | "remove">;
    /** Identity of the archive: whoever archives into it again takes its registration over. */
    readonly archive: string;
    readonly graceMs: number;
    /** Returns the newest archived positions, by shard. */
    readonly archived: () => readonly ArchivedShard[];
    /** Called after each renewal that failed; the next one comes in its time. */
    readonly onFailure: (error: PserverError) => void;
}
/** Tells the hosts of a job how much an archiver has copied, so that they do not trim the rest. */
export declare class ArchiverRegistration {
    #private;
    constructor(deps: RegistrationDeps);
    /** Registers, and renews the registration from then on. @throws the errors of {@link KvBucket}. */
    start(): Promise<void>;
    /** Ends the renewals; the registration stays until hosts have waited for its grace time. */
    stop(): void;
    /** Removes the registration. @throws the errors of {@link KvBucket}. */
    end(): Promise<void>;
}
/** Options of {@link JobArchiver}. */
export interface JobArchiverOptions {
    readonly connection: ConnectionSettings;
    readonly job: string;
    /** Directory of the archive. */
    readonly directory: string;
    /** Called before the directory is used: keeps other archivers out of it. */
    readonly lock: () => Promise<void>;
    /** How long hosts keep what is not copied after the last renewal by this archiver. */
    readonly graceMs: number;
    /** Called for a part that is damaged, in the archive or in the broker; the rest is copied. */
    readonly onDamaged: (error: PserverError) => void;
    /** Called after each renewal that failed; the next one comes in its time. */
    readonly onUnregistered: (error: PserverError) => void;
}
/** Archives a job from the broker, registered with its hosts. */
export declare class JobArchiver {
    #private;
    private constructor();
    /**
     * Connects as a host does, without joining the job, opens the archive and registers; needs no host.
     * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if there is no such
     * job; BAD_ARCHIVE if the directory holds the archive of another; BAD_VERSION, DISK_FULL, IO.
     */
    static open(options: JobArchiverOptions): Promise<JobArchiver>;
    /** Progress of the shards, by their numbers. */
    get progress(): ShardProgress[];
    /** Copies what is there now. @throws as {@link Archiver.copy}. */
    copy(signal: AbortSignal): Promise<void>;
    /**
     * Completes the files, takes the registration back and closes the connection.
     * @throws DISK_FULL, IO; NO_BROKER and the like if the registration cannot be taken back.
     */
    end(): Promise<void>;
    /** Closes the connection and leaves the rest as it is: hosts wait for the grace time. */
    abandon(): Promise<void>;
}
//# sourceMappingURL=job-archiver.d.ts.map