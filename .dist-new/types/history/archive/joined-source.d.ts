import type { Shard } from "../../actors/fold/shard.ts";
import type { ArchivedState, RecoveryArchive } from "../../actors/recovery/inspect-snapshots.ts";
import { type Position, PserverError } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { type HistorySource, type ShardHistory, type StoredTapeMessage } from "../source.ts";
/**
 * Checks that two histories of a shard do not contradict each other: where both hold records of a generation, the
 * last one that both hold is the same, and so is the journal of which their snapshots were made.
 * @throws BAD_ARCHIVE, which names the archive by `path`; errors of the sides.
 */
export declare function checkSameHistory(path: string, archive: ShardHistory, broker: ShardHistory, signal: AbortSignal): Promise<void>;
/** Makes the BAD_ARCHIVE for an archive that contradicts the broker. */
export declare function contradictsBroker(path: string, problem: string): PserverError;
/**
 * Reads the messages of a source's tape after the one that was copied last; all if none was. Where the source has
 * another message in its place, because the end of its tape was lost and written again, reads those stored at that
 * time or later: whoever reads the lines skips those that come twice.
 * @throws errors of the source; the reason of `signal`.
 */
export declare function readTapeAfter(history: Pick<ShardHistory, "readTape">, last: StoredTapeMessage | undefined, signal: AbortSignal): AsyncGenerator<StoredTapeMessage, void, undefined>;
/**
 * Reads an archive and what the broker still holds as one history, the archive's part first. Closing it closes both.
 * @throws BAD_ARCHIVE if they are of different jobs.
 */
export declare function joinHistories(archive: HistorySource, live: HistorySource): HistorySource;
/**
 * An archive and the damaged history in the broker, for `pserver recover`. Both are read as one, so that records
 * the broker has lost come from the archive and those after the archive from the broker. Where the broker holds
 * other records in the place of lost ones, the archive is read alone.
 */
export declare class BrokerAndArchive implements RecoveryArchive {
    #private;
    private constructor();
    /**
     * Opens the archive in a directory, and the job in the broker; the caller closes it.
     * @throws BAD_ARCHIVE, BAD_VERSION, IO for the archive; NO_BROKER, DENIED, BAD_NAME and the like.
     */
    static open(directory: string, reach: ConnectionSettings, job: string, signal: AbortSignal): Promise<BrokerAndArchive>;
    get name(): string;
    newest(shard: number): Promise<ArchivedState>;
    rebuild(shard: number, at: Position): Promise<Shard>;
    /** Closes the connection. */
    close(): Promise<void>;
}
//# sourceMappingURL=joined-source.d.ts.map