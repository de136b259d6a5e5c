import { type ConnectionOverrides } from "../client/wire/broker-settings.ts";
import { type JournalHandle } from "./open-journal.ts";
export type { BlockHeader } from "../actors/fold/block-actor.ts";
export type { UpdateEvent } from "../actors/journal/describe-record.ts";
export { ERROR_CODES, type ErrorCode, PserverError } from "../protocol/errors.ts";
export type { Position } from "../protocol/messages/position.ts";
export type { Tensor } from "../protocol/tensor.ts";
export type { JournalHandle, ModelAtPoint, ReplayToOptions, UpdatesOptions, } from "./open-journal.ts";
export type { Cut, Point, ResolvedPoint } from "./points.ts";
export { formatPoint, parsePoint } from "./points.ts";
export type { ReplayedBlock, ReplayedModel, ReplayedParameter, ReplayedShard, } from "./replay/replayed-model.ts";
export type { HistoryPlace, HistorySource, JobFacts, JournalSpan, KeptSnapshot, ShardHistory, TimedRecord, } from "./source.ts";
/** Names the job whose journals are opened. Settings of the broker that are not given come from the environment. */
export interface JournalOptions extends ConnectionOverrides {
    readonly job: string;
    /** Directory of an archive, or a recorded file, which is read with the broker as one history. */
    readonly archive?: string;
}
/**
 * Opens the journals of a job for reading; needs no host, and changes nothing. The user needs the JetStream
 * API, like the user that hosts store with. The caller closes it.
 * @throws NO_BROKER, DENIED, NO_JETSTREAM, TIMEOUT; BAD_NAME if the broker holds no such job; BAD_VALUE for
 * an invalid setting.
 * @example
 * const journal = await openJournal({ job: "mnist" });
 * const { model } = await journal.replayTo("10m ago");
 */
export declare function openJournal(options: JournalOptions): Promise<JournalHandle>;
/**
 * Opens the archive in a directory, or a file of `pserver record`, of which every byte is checked; without a broker.
 * The caller closes it.
 * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
 */
export declare function openArchivedJournal(archive: string): Promise<JournalHandle>;
//# sourceMappingURL=index.d.ts.map