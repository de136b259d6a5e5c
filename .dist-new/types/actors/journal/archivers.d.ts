import { type Position } from "../../protocol/index.ts";
import type { KvBucket } from "./kv-bucket.ts";
/**
 * How far an archiver has copied a shard: all records and snapshots up to these. Generation 0 stands for nothing yet.
 */
export interface ArchivedShard {
    readonly record: Position;
    readonly snapshot: Position;
}
/** The entry by which an archiver registers itself with a job. */
export interface ArchiverEntry {
    /** Identity of its archive. */
    readonly archiver: string;
    readonly machine: string;
    readonly pid: number;
    /** When the archiver wrote the entry by its own clock, in milliseconds since 1970; only shown to people. */
    readonly writtenMs: number;
    /** How long hosts wait for the archiver after its entry has last changed. */
    readonly graceMs: number;
    /** Its copies, by the shard's number. */
    readonly shards: readonly ArchivedShard[];
}
/** Returns the key of an archiver's entry. */
export declare function archiverKey(archiver: string): string;
/** Returns the entry as JSON. */
export declare function toArchiverJson(entry: ArchiverEntry): unknown;
/** Parses an archiver's entry. @throws BAD_VERSION for an entry of another format, INTERNAL for a damaged one. */
export declare function parseArchiverEntry(value: unknown, key: string): ArchiverEntry;
/** An archiver's entry in the job's bucket, with its key and revision. */
export interface StoredArchiver {
    readonly key: string;
    readonly revision: number;
    /** Undefined if this version cannot read it. */
    readonly entry: ArchiverEntry | undefined;
}
/** Reads the entries of all registered archivers. @throws the errors of {@link KvBucket}. */
export declare function readArchivers(bucket: Pick<KvBucket, "keys" | "read">): Promise<StoredArchiver[]>;
/** Dependencies of {@link ArchiverWatch}. */
export interface ArchiverWatchDeps {
    readonly bucket: Pick<KvBucket, "keys" | "read" | "remove">;
    /** Milliseconds of a clock that never decreases. */
    readonly nowMs: () => number;
}
/**
 * Watches the archivers of a job. An archiver whose entry stays the same for longer than its grace time is taken to
 * be gone, and its entry is removed. Only this host's clock counts.
 */
export declare class ArchiverWatch {
    #private;
    constructor(deps: ArchiverWatchDeps);
    /**
     * Returns what each archiver that is alive has copied of a shard.
     * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
     */
    copied(shard: number): Promise<ArchivedShard[]>;
}
//# sourceMappingURL=archivers.d.ts.map