import type { UpdateEvent } from "../actors/journal/describe-record.ts";
import type { PserverError } from "../protocol/index.ts";
import { type ResolvedPoint } from "./points.ts";
import type { ReplayedModel } from "./replay/replayed-model.ts";
import type { HistoryPlace, HistorySource } from "./source.ts";
import type { UpdateFilter } from "./update-stream.ts";
/**
 * Opens the history of a job for reading; the caller closes it.
 * @throws NO_BROKER, DENIED, NO_JETSTREAM, TIMEOUT; BAD_NAME if there is no such job; BAD_ARCHIVE,
 * BAD_VERSION, IO for an archive.
 */
export declare function openHistory(place: HistoryPlace): Promise<HistorySource>;
/** Options of {@link JournalHandle.replayTo}. */
export interface ReplayToOptions {
    readonly signal?: AbortSignal;
    /** Whether shards are rebuilt on worker threads, several at once; true by default. */
    readonly threads?: boolean;
    /** Called now and then with the number of records folded, of those to fold as far as that is known. */
    readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}
/** Options of {@link JournalHandle.updates}. */
export interface UpdatesOptions extends UpdateFilter {
    /** Only updates after this point; by default all that are known. */
    readonly since?: string;
    /** Only updates up to this point; by default all that exist now. */
    readonly until?: string;
    /** Whether later updates are read, too, until the signal is aborted; false by default. */
    readonly follow?: boolean;
    /** Called with TAPE_DAMAGED for records of which nothing says what happened, and with BAD_ARCHIVE for a damaged file. */
    readonly onDamage?: (error: PserverError) => void;
    readonly signal?: AbortSignal;
}
/** A rebuilt model, and the point as it was understood. */
export interface ModelAtPoint {
    readonly point: ResolvedPoint;
    readonly model: ReplayedModel;
    /** Frees the model's memory; its values can no longer be read. */
    close(): Promise<void>;
}
/** The journals of a job, open for reading. */
export declare class JournalHandle {
    #private;
    readonly source: HistorySource;
    constructor(source: HistorySource, place: HistoryPlace);
    /**
     * Returns the cut that a point means: `now`, `10m ago`, `2026-11-23T04:12:07Z`, `3:1200`, ….
     * @throws BAD_VALUE for a text that is no point or one after the end, HISTORY_LOST for one before what is kept.
     */
    resolve(point: string, signal?: AbortSignal): Promise<ResolvedPoint>;
    /**
     * The updates of the job, one after the other: each entry of a batch, each note, and each record of a host, in
     * the order of the times at which the broker stored them. Memory does not grow with their number.
     * @throws TAPE_DAMAGED, BAD_ARCHIVE at the end if no `onDamage` was there to be told of it; as {@link resolve}; what the source and the fold throw; the reason of the signal.
     * @example
     * for await (const update of journal.updates({ trainer: "trainer-2", since: "1h ago" })) console.log(update);
     */
    updates(options?: UpdatesOptions): AsyncGenerator<UpdateEvent, void, undefined>;
    /**
     * Rebuilds the model as it was at a point, by the code that hosts fold with. The caller closes it.
     * @throws as {@link resolve}; SNAPSHOT_DAMAGED, JOURNAL_DAMAGED if what is kept cannot be read;
     * UNKNOWN_RULES if this version cannot fold it; the reason of the signal.
     * @example
     * const { model } = await journal.replayTo("10m ago");
     * const { data } = await model.tensor("w");
     */
    replayTo(point: string, options?: ReplayToOptions): Promise<ModelAtPoint>;
    /** Closes its source. Models that were rebuilt on threads stay until they are closed. */
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
/**
 * Opens the journals of a job for reading; needs no host, and changes nothing. The caller closes it.
 * @throws as `openHistory`.
 */
export declare function openJournalAt(place: HistoryPlace): Promise<JournalHandle>;
//# sourceMappingURL=open-journal.d.ts.map