import type { ErrorCode } from "./errors.ts";
/** Error numbers of the JetStream API that hosts and clients act on. */
export declare const JETSTREAM_ERRORS: {
    readonly ACCOUNT_EXCEEDED: 10002;
    readonly NO_SUITABLE_PEERS: 10005;
    readonly CONSUMER_NOT_FOUND: 10014;
    readonly INSUFFICIENT_RESOURCES: 10023;
    readonly CONSUMERS_MAX: 10026;
    readonly STREAMS_MAX: 10027;
    readonly INSUFFICIENT_MEMORY: 10028;
    readonly NOT_IN_A_CLUSTER: 10036;
    readonly MESSAGE_NOT_FOUND: 10037;
    readonly NOT_ENABLED_FOR_ACCOUNT: 10039;
    readonly SEQUENCE_NOT_FOUND: 10043;
    readonly INSUFFICIENT_STORAGE: 10047;
    /** The broker could not create a stream's store; its text does not say why. */
    readonly STREAM_NOT_MADE: 10049;
    readonly BAD_STREAM_CONFIG: 10052;
    readonly BEYOND_STREAM_LIMITS: 10053;
    readonly MESSAGE_TOO_LARGE: 10054;
    /** The cause is only in the text, which differs by broker version. */
    readonly MESSAGE_NOT_REMOVED: 10057;
    readonly STREAM_NAME_IN_USE: 10058;
    readonly STREAM_NOT_FOUND: 10059;
    readonly WRONG_LAST_SEQUENCE: 10071;
    readonly NO_REPLICAS_WITHOUT_CLUSTER: 10074;
    readonly NOT_ENABLED: 10076;
    /** A limit of the stream or an error of its store; the text tells which. */
    readonly STORE_FAILED: 10077;
    readonly HEADER_TOO_LARGE: 10097;
    readonly NO_LIMITS: 10120;
    readonly BEYOND_ACCOUNT_LIMITS: 10122;
    /** In a cluster: another write to the same subject is under way, or was faster. */
    readonly WRONG_LAST_SEQUENCE_UNKNOWN: 10164;
};
/** JetStream's answer to a request that it refuses. */
export interface JetStreamRefusal {
    /** As of HTTP; 0 if there is none. */
    readonly status: number;
    /** One of {@link JETSTREAM_ERRORS} or any other; 0 if there is none. */
    readonly errorCode: number;
    readonly description: string;
}
/**
 * Codes by error number: one table for hosts and clients, in C too. Other numbers are classified by their
 * status; see {@link refusalCode}.
 */
export declare const REFUSAL_CODES: Readonly<Record<number, ErrorCode>>;
/**
 * Returns the code for a refusal of the JetStream API. JETSTREAM_UNAVAILABLE, which can be retried, stands
 * for Raft without a leader, a stream or consumer that is offline, an incomplete cluster, and any other
 * status of a server's fault; INTERNAL for an unknown refusal with another status.
 */
export declare function refusalCode({ status, errorCode, description }: JetStreamRefusal): ErrorCode;
/**
 * Returns the code for a refusal to store a message: as {@link refusalCode}, but JOURNAL_FULL instead of
 * NO_SPACE, because an existing stream gets room again, by snapshots or from whoever runs the broker.
 */
export declare function storeRefusalCode(refusal: JetStreamRefusal): ErrorCode;
//# sourceMappingURL=jetstream-errors.d.ts.map