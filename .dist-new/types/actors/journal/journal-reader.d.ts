import { type JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import { type ReplicaDamage } from "./replicas.ts";
/** Whether no retry can help against an error of taking over or reading a journal. */
export declare function isFinal(error: PserverError): boolean;
/**
 * Decides whether an operation on a journal is retried: without limit after a transient error, not at
 * all after a final one, and at most ten times in a row after an unexplained one.
 */
export declare class RetryLimit {
    #private;
    /** Counts a failed attempt. Returns whether it was the last one. */
    isReachedBy(error: PserverError): boolean;
    /** Notes that an attempt has succeeded. */
    clear(): void;
}
/** Dependencies of {@link JournalReader}. */
export interface JournalReaderDeps {
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly inboxPrefix: string;
    readonly credit: Credit;
    /** Whether several brokers keep the stream, whose copies may differ. */
    readonly isReplicated: boolean;
}
/** A record as the broker delivers it. */
export interface DeliveredRecord extends JournalRecord {
    /** The broker whose copy of the stream it is from; undefined if there is only one. */
    readonly broker: string | undefined;
    /** When the broker stored it, in milliseconds since 1970, with fractions. */
    readonly timeMs: number;
}
/** Callbacks of a {@link JournalReader}. */
export interface JournalReaderEvents {
    /** Checks the journal before each consumer is created, and returns where to read on. */
    readonly locate: () => Promise<{
        stream: string;
        startSeq: number;
    }>;
    /**
     * Called for each record, in the order of the stream. {@link JournalReader.taken} must be called for each one
     * afterwards.
     */
    readonly onRecord: (record: DeliveredRecord) => void;
    /** Called when one copy of a replicated stream lacks records, or cannot deliver them, which another one has. */
    readonly onReplicaDamaged?: (damage: ReplicaDamage) => void;
    /** Called once if reading cannot go on; the reader has stopped. */
    readonly onFailure: (error: PserverError) => void;
}
/**
 * Delivers a journal stream in order and without end, through an unfiltered pull consumer without acknowledgements.
 * Records lost with a connection are requested again; if some are still missing, it delivers the records after the
 * gap, and the fold detects the gap. A record whose subject has changed so that its delivery ends the connection is
 * JOURNAL_DAMAGED.
 *
 * A consumer reads the copy of one broker. If several have copies, what one lacks or cannot deliver is looked for in
 * the others first.
 */
export declare class JournalReader {
    #private;
    constructor(deps: JournalReaderDeps);
    /** Starts to read. May be called once. */
    start(events: JournalReaderEvents): Promise<void>;
    /** Starts a new consumer where `locate` says. */
    reset(): Promise<void>;
    /** Starts a new consumer after the connection was lost: earlier requests are never answered. */
    reconnected(): Promise<void>;
    /** Notes that delivered records are folded or forgotten, so that as many more may be requested. */
    taken(records: number): void;
    /** Reads the copies of other brokers from the next {@link reset} on, as long as one of them can be read. */
    avoid(broker: string): void;
    /** Ends what {@link avoid} began. */
    allow(broker: string): void;
    /** Stops the delivery for good. */
    stop(): void;
}
/**
 * Computes how many records a reader may request so that they stay within a number of bytes. Sizes are not known in
 * advance, so the largest recent record is the estimate for the next ones.
 */
export declare class Credit {
    #private;
    /** `bytes` limits the requested records. The first estimate is the largest possible record. */
    constructor(bytes: number, recordBytesMax: number);
    /** Updates the estimate with the size of a record. */
    noteSize(bytes: number): void;
    /** How many records may be requested and not yet folded. */
    get records(): number;
}
//# sourceMappingURL=journal-reader.d.ts.map