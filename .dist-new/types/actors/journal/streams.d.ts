import { type ConsumerConfig, type ConsumerInfo, type JetStreamClient, type JetStreamManager, type JsMsg, type StreamConfig } from "@nats-io/jetstream";
import { type ErrorDetails, type JobSubjects } from "../../protocol/index.ts";
/**
 * Whether the broker holds a stream of this name.
 * @throws the JetStream client's error if the broker does not say.
 */
export declare function streamExists(manager: JetStreamManager, stream: string): Promise<boolean>;
/**
 * Creates a stream on file that refuses messages beyond its limits, unless it exists. An existing one is not
 * requested again: a broker that has less storage than it has promised would refuse that.
 * @returns the configuration of one that existed; undefined if it was created.
 * @throws the JetStream client's error if the broker does not create it.
 */
export declare function ensureFileStream(manager: JetStreamManager, config: Pick<StreamConfig, "name" | "subjects" | "num_replicas"> & Partial<StreamConfig>): Promise<StreamConfig | undefined>;
/**
 * Deletes a stream unless it is gone already; returns whether it existed.
 * @throws the JetStream client's error if the broker does not delete it.
 */
export declare function deleteStream({ streams }: {
    readonly streams: Pick<JetStreamManager["streams"], "delete">;
}, name: string): Promise<boolean>;
/** A stream by its name, and when it was made: that tells it from another one of the same name. */
export interface MadeStream {
    readonly name: string;
    readonly created: string;
}
/**
 * Deletes a stream unless it is gone already; returns whether it existed. The broker deletes by name, so it is looked
 * at directly before.
 * @throws BUSY if another stream has the name by now; the JetStream client's error if the broker does not delete it.
 */
export declare function deleteStreamAsMade({ streams }: {
    readonly streams: Pick<JetStreamManager["streams"], "info" | "delete">;
}, { name, created }: MadeStream): Promise<boolean>;
/** Returns the result of `request`; undefined if the broker says that there is no such stream. */
export declare function unlessMissing<Result>(request: () => Promise<Result>): Promise<Result | undefined>;
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
 * Makes a consumer that is kept once; returns the first that the broker has made. A cluster may give one to a broker
 * that has just died, and say nothing. So while there is no answer another one is made, which it may give to another
 * broker; one that is not used expires.
 * @param config of each consumer, with a new name.
 * @throws the first error of the broker.
 */
export declare function makeConsumer(manager: Pick<JetStreamManager, "consumers">, stream: string, config: () => Partial<ConsumerConfig>): Promise<ConsumerInfo>;
/**
 * Reads messages of a stream in order, in batches; requests each batch after the last one was used. Leaves out messages
 * that are damaged in the broker's files, which it counts and never delivers.
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
//# sourceMappingURL=streams.d.ts.map