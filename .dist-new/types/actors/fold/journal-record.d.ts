import { type Message } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import { type Batch } from "../../protocol/messages/batch-records.ts";
import type { HostRecord } from "../../protocol/messages/host-records.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import { type RecordHeader } from "../../protocol/messages/records.ts";
import type { JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import type { Change } from "./apply-update.ts";
import type { FaultyEntry, RunChange } from "./batch/run-change.ts";
import type { Rules } from "./rules.ts";
/** Reads the checksum in a record's envelope, which identifies the record; 0 if no shard can read the record. */
export declare function recordCrc(payload: Uint8Array): number;
/**
 * Reads the message in a record; undefined if it is unreadable: damaged, malformed, or with more than
 * `headerBytesMax` bytes before its tensor bytes, by default the most that a record of any kind may have.
 */
export declare function readRecordMessage(payload: Uint8Array, headerBytesMax?: number): Message | undefined;
/** Reads the header of a trainer's record; undefined if the record is unreadable or not a trainer's. */
export declare function readRecordHeader(payload: Uint8Array): RecordHeader | undefined;
/** Reads a batch; undefined if the record is unreadable or no batch. */
export declare function readBatch(payload: Uint8Array): Batch | undefined;
/** Returns the result of `read`; undefined if it throws a `PserverError`. */
export declare function readable<Value>(read: () => Value): Value | undefined;
/** A record of a shard's journal as the stream delivers it. The fold does not keep `payload`. */
export interface JournalRecord {
    readonly seq: number;
    readonly subject: string;
    readonly payload: Uint8Array;
    /**
     * False if the caller can read the record again. Then `apply` throws BAD_CHECKSUM for a payload that does not match
     * its checksum, because it may have been damaged in transit; otherwise it folds the record as unreadable.
     */
    readonly reread?: boolean;
    /** When the broker stored it, in milliseconds since 1970. Only observers see it; the fold does not. */
    readonly timeMs?: number;
}
/**
 * Reads the record's message; undefined if it is unreadable under the rules in force.
 * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum.
 */
export declare function readMessage(record: JournalRecord, subject: LogSubject | undefined, rules: Rules | undefined, shard: number): Message | undefined;
/** A subject of a journal. */
export interface ReadSubject {
    /** The parts of the subject; undefined if it does not belong to the job's journals. */
    readonly parsed: LogSubject | undefined;
    /** Checksum of its characters. */
    readonly crc: number;
}
/** Parses journal subjects, with a cache, because the same few subjects repeat. */
export declare class LogSubjects {
    #private;
    constructor(subjects: JobSubjects);
    /** Parses a subject. */
    read(subject: string): ReadSubject;
}
/** Sequence of a record, and when the broker stored it, in milliseconds since 1970; 0 if that is not known. */
interface FoldedPlace {
    readonly seq: number;
    readonly timeMs: number;
}
/** One record with its outcome. Views of its payload are valid during the call only. */
export type FoldedRecord = FoldedPlace & Folded;
type Folded = {
    readonly kind: "unreadable";
    /** Undefined if the subject does not belong to the job's journals. */
    readonly subject: LogSubject | undefined;
    readonly payloadBytes: number;
} | {
    readonly kind: "host";
    readonly record: HostRecord;
} | {
    readonly kind: "trainer";
    readonly subject: Exclude<LogSubject, {
        by: "host";
    }>;
    readonly header: RecordHeader;
    readonly message: Message;
    readonly outcome: Outcome;
    /** Whether an earlier copy of the record was folded; `outcome` may be that of the copy. */
    readonly isRepeat: boolean;
    /** The change made; undefined for a record that was rejected, repeated or about no block, and for a batch. */
    readonly change: Change | undefined;
    /** The changes that the runs of a batch made. */
    readonly runs: readonly RunChange[];
    /** The entry for which a batch was rejected, if it was an entry. */
    readonly fault: FaultyEntry | undefined;
};
/**
 * Gets each record with its outcome. It must not change the shard; it may use the scratch of the shard's memory. What
 * it throws does not reach the fold.
 */
export interface FoldObserver {
    /** Called when a record's changes were made, before the step that it closes is applied. */
    observe(record: FoldedRecord): void;
    /** Called with the error that {@link observe} has thrown for a record. Errors of this call are only counted. */
    failed(record: FoldedRecord, error: PserverError): void;
}
export {};
//# sourceMappingURL=journal-record.d.ts.map