import { type ConsumerConfig, type JetStreamClient, type JetStreamManager, type JsMsg, type StreamConfig } from "@nats-io/jetstream";
import { type ErrorDetails, type JobSubjects } from "../../protocol/index.ts";
/**
 * Whether the broker holds a stream of this name.
 * @throws the JetStream client's error if the broker does not say.
 */
export declare function streamExists(manager: JetStreamManager, stream: string): Promise<boolean>;
/**
 * Creates a stream on file that refuses messages beyond its limits, unless it exists. An existing one is not
 * requested again: a broker that has less storage than it has promised would refuse that.
 * @throws the JetStream client's error if the broker does not create it.
 */
export declare function ensureFileStream(manager: JetStreamManager, config: Pick<StreamConfig, "name" | "subjects" | "num_replicas"> & Partial<StreamConfig>): Promise<void>;
/**
 * Deletes a stream unless it is gone already; returns whether it existed.
 * @throws the JetStream client's error if the broker does not delete it.
 */
export declare function deleteStream({ streams }: {
    readonly streams: Pick<JetStreamManager["streams"], "delete">;
}, name: string): Promise<boolean>;
/** Returns the result of `run`. @throws the error that `fromBrokerError` makes of its error, naming the action. */
export declare function brokerCall<Result>(action: string, details: ErrorDetails, run: () => Promise<Result>): Promise<Result>;
/** What {@link readStream} reads, and how. */
export interface StreamRead {
    readonly manager: JetStreamManager;
    readonly client: JetStreamClient;
    readonly stream: string;
    /** Which messages to read: on a subject, from a sequence or a time on, perhaps without payloads. */
    readonly select: Pick<Partial<ConsumerConfig>, "filter_subject" | "deliver_policy" | "opt_start_seq" | "opt_start_time" | "headers_only">;
    /** Sequence to read up to at least; without it, to the end of the stream. */
    readonly toSeq?: number;
    /** How many messages are requested, and held in memory, at a time; {@link BATCH_MESSAGES} by default. */
    readonly batchMessages?: number;
    /** How long the broker may deliver nothing while there are more messages. */
    readonly timeoutMs: number;
    /** Whether to leave out messages that the broker does not deliver in that time, instead of failing. */
    readonly isLossy?: boolean;
    /** The action and its object, for errors. */
    readonly action: string;
    readonly details: ErrorDetails;
}
/**
 * Reads messages of a stream in order, in batches; requests each batch after the last one was used.
 * @throws TIMEOUT if none comes in time, or one was lost on its way; the errors of `fromBrokerError`.
 */
export declare function readStream(read: StreamRead): AsyncGenerator<readonly JsMsg[], void, undefined>;
/**
 * Finds out whether the broker can reserve so many bytes, by creating a stream with that limit and deleting it. All
 * hosts of a job use one stream name, so a host that dies in between leaves at most this one stream behind, and the
 * next probe deletes it.
 * @throws TIMEOUT, NO_JETSTREAM and the like if the broker does not say.
 */
export declare function probeStorage(manager: JetStreamManager, subjects: JobSubjects, storage: "file" | "memory", bytes: number, probeMsMax?: number): Promise<boolean>;
/**
 * Answers one host's questions about the broker's space. One probe runs at a time, for all questions that have come
 * since the last one began: the probes of a thousand parameters created at once would block each other.
 */
export declare class StorageQueries {
    #private;
    /** `probe` asks the broker whether it can reserve so many bytes. */
    constructor(probe: (bytes: number) => Promise<boolean>);
    /** Whether the broker can reserve so many bytes, by a probe that begins after this call. */
    fits(bytes: number): Promise<boolean>;
}
/** Creates queries about the file storage of the broker that `manager` speaks to. */
export declare function storageQueries(manager: JetStreamManager, subjects: JobSubjects): StorageQueries;
//# sourceMappingURL=streams.d.ts.map