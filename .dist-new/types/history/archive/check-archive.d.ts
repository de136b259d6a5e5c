import { type PserverError } from "../../protocol/index.ts";
import type { JournalSpan } from "../source.ts";
/** Contents of an archive, and its damage. */
export interface ArchiveFindings {
    readonly shards: readonly ShardFindings[];
    /** An error for each damaged file. */
    readonly damage: readonly PserverError[];
}
/** Contents of an archive about a shard. */
interface ShardFindings {
    readonly shard: number;
    readonly spans: readonly JournalSpan[];
    readonly snapshots: number;
    /** Records that are missing between those of the archive, or before them. */
    readonly missing: readonly JournalSpan[];
    readonly tape: TapeFindings;
}
/** Contents of an archive about a shard's tape. */
export interface TapeFindings {
    readonly messages: number;
    /** Number of messages that are missing between those of the archive, or before them. */
    readonly missing: number;
}
/**
 * Reads a whole archive and reports its contents and which files are damaged.
 * @throws BAD_ARCHIVE if there is no archive or the file with its facts is damaged, BAD_VERSION, IO; the reason of
 * `signal`.
 */
export declare function checkArchive(directory: string, signal: AbortSignal): Promise<ArchiveFindings>;
export {};
//# sourceMappingURL=check-archive.d.ts.map