import { type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { type HostRecord, type JobSubjects, type Position, type Synchronization } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
/** The state of a shard's journal stream. */
export interface JournalInfo {
    /** Creation time of the stream; it distinguishes a new stream from an old one of the same name. */
    readonly created: string;
    readonly firstSeq: number;
    /** The last sequence that the stream has assigned, perhaps to a record that could not be stored. */
    readonly lastSeq: number;
    /**
     * Sequences between the first and the last at which the stream reports no record, ascending. A record damaged in
     * the store is usually not among them: the stream still counts it.
     */
    readonly missing: readonly number[];
    /**
     * Sequences that the broker reports as lost since its start; empty if it has found damage but cannot name them;
     * undefined if it knows of no loss.
     */
    readonly lost: readonly number[] | undefined;
    readonly bytes: number;
    readonly bytesMax: number;
}
/** Settings of a job's journals. */
export interface JournalSettings {
    readonly storage: "file" | "memory";
    /** Bytes of one shard's journal beyond which the broker refuses records. */
    readonly bytesMax: number;
    readonly replicas: number;
    /** Version of the rules of a new shard. */
    readonly rules: number;
    /** Synchronization of the job's trainers; the first record names it. */
    readonly synchronization: Synchronization;
}
/** Dependencies of {@link Journal}. */
export interface JournalDeps {
    readonly manager: JetStreamManager;
    readonly client: JetStreamClient;
    readonly subjects: JobSubjects;
    readonly settings: JournalSettings;
    readonly shard: number;
}
/**
 * Reads a record of a journal stream from the leader; undefined if the stream does not hold it. It comes in JSON,
 * whatever its subject.
 * @throws the JetStream client's errors.
 */
export declare function storedRecord({ streams }: Pick<JetStreamManager, "streams">, stream: string, seq: number): Promise<JournalRecord | undefined>;
/** Creates, inspects and removes the journal streams of one shard. `JournalReader` reads a journal in order. */
export declare class Journal {
    #private;
    readonly shard: number;
    constructor(deps: JournalDeps);
    /** Version of the rules of a new shard. */
    get rules(): number;
    /** Whether several brokers keep the journal, so that more than one may take itself for the leader. */
    get isReplicated(): boolean;
    /** Returns the name of a generation's stream. */
    stream(generation: number): string;
    /**
     * Reads the state of the stream as the answering broker knows it, see {@link majorityInfo}; undefined without a
     * stream.
     * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, …
     */
    info(generation: number): Promise<JournalInfo | undefined>;
    /** Reads the last sequence that the stream has assigned; undefined without a stream. Cheaper than {@link info}. */
    lastSeq(generation: number): Promise<number | undefined>;
    /**
     * Creates the stream of a generation, or completes an interrupted creation. With `rules`, its first
     * record, stored before any trainer can publish, is a `rules` record of that version and of the
     * job's synchronization.
     * @throws NO_SPACE if the broker cannot hold it.
     */
    open(generation: number, rules?: number): Promise<JournalInfo>;
    /**
     * Makes way for a journal of a later generation: takes the subjects from the newest abandoned journal on file,
     * which keeps its records and takes no more; removes older ones. Journals in memory are removed when the next one
     * is opened.
     * @returns the states of the abandoned journals that existed, by generation.
     */
    setAside(generations: readonly number[]): Promise<ReadonlyMap<number, JournalInfo>>;
    /** Removes the streams of abandoned generations; one that is gone already counts as removed. */
    remove(generations: readonly number[]): Promise<void>;
    /** Reads one record from the leader; undefined if the stream does not hold it. */
    record(generation: number, seq: number): Promise<JournalRecord | undefined>;
    /** Whether a stream still begins with the record of its rules. */
    beginsWithRules(generation: number): Promise<boolean>;
    /** Appends a host's record, and repeats that if the answer is lost: all host records are idempotent. */
    append(record: HostRecord): Promise<Position>;
    /** Removes the records below `seq`; only from the beginning, because a gap would look like damage. */
    purgeBelow(generation: number, seq: number): Promise<void>;
    /** Returns the newest generation whose stream has the subjects of the journal; 0 if there is none. */
    newestGeneration(): Promise<number>;
}
/**
 * Reads the state of the stream, with every record that was acknowledged before the call; undefined without a stream.
 * Appends a record that changes nothing to a replicated journal. If the journal can take none, because it is full or
 * its broker cannot write, the leader's answer is taken as it is.
 * @throws JETSTREAM_UNAVAILABLE if no leader with a majority answers, and the errors of {@link Journal.info}.
 */
export declare function majorityInfo(journal: Pick<Journal, "shard" | "isReplicated" | "info" | "append">, generation: number): Promise<JournalInfo | undefined>;
/**
 * Reads the last sequence of a position's generation. If it is below the position, a record is appended to make sure.
 * Undefined without a stream, or if the journal takes no record.
 */
export declare function majorityLastSeq(journal: Pick<Journal, "isReplicated" | "lastSeq" | "append">, { generation, seq }: Position): Promise<number | undefined>;
/** Reads one record that the stream is known to count; undefined if it cannot be read. */
export declare function majorityRecord(journal: Pick<Journal, "isReplicated" | "record">, generation: number, seq: number): Promise<JournalRecord | undefined>;
//# sourceMappingURL=journal.d.ts.map