/** Error numbers of the JetStream API that hosts and clients act on. */
export const JETSTREAM_ERRORS = {
    ACCOUNT_EXCEEDED: 10002,
    NO_SUITABLE_PEERS: 10005,
    CONSUMER_NOT_FOUND: 10014,
    INSUFFICIENT_RESOURCES: 10023,
    CONSUMERS_MAX: 10026,
    STREAMS_MAX: 10027,
    INSUFFICIENT_MEMORY: 10028,
    NOT_IN_A_CLUSTER: 10036,
    MESSAGE_NOT_FOUND: 10037,
    NOT_ENABLED_FOR_ACCOUNT: 10039,
    SEQUENCE_NOT_FOUND: 10043,
    INSUFFICIENT_STORAGE: 10047,
    /** The broker could not create a stream's store; its text does not say why. */
    STREAM_NOT_MADE: 10049,
    BAD_STREAM_CONFIG: 10052,
    BEYOND_STREAM_LIMITS: 10053,
    MESSAGE_TOO_LARGE: 10054,
    /** The cause is only in the text, which differs by broker version. */
    MESSAGE_NOT_REMOVED: 10057,
    STREAM_NAME_IN_USE: 10058,
    STREAM_NOT_FOUND: 10059,
    WRONG_LAST_ID: 10070,
    WRONG_LAST_SEQUENCE: 10071,
    NO_REPLICAS_WITHOUT_CLUSTER: 10074,
    NOT_ENABLED: 10076,
    /** A limit of the stream or an error of its store; the text tells which. */
    STORE_FAILED: 10077,
    HEADER_TOO_LARGE: 10097,
    NO_LIMITS: 10120,
    BEYOND_ACCOUNT_LIMITS: 10122,
    /** In a cluster: another write to the same subject is under way, or was faster. */
    WRONG_LAST_SEQUENCE_UNKNOWN: 10164,
};
const E = JETSTREAM_ERRORS;
/**
 * Codes by error number: one table for hosts and clients, in C too. Other numbers are classified by their
 * status; see {@link refusalCode}.
 */
export const REFUSAL_CODES = {
    // No JetStream until somebody configures it.
    [E.NOT_ENABLED]: "NO_JETSTREAM",
    [E.NOT_ENABLED_FOR_ACCOUNT]: "NO_JETSTREAM",
    // No storage left, or a limit of the account reached.
    [E.ACCOUNT_EXCEEDED]: "NO_SPACE",
    [E.INSUFFICIENT_RESOURCES]: "NO_SPACE",
    [E.INSUFFICIENT_MEMORY]: "NO_SPACE",
    [E.INSUFFICIENT_STORAGE]: "NO_SPACE",
    [E.CONSUMERS_MAX]: "NO_SPACE",
    [E.STREAMS_MAX]: "NO_SPACE",
    [E.NO_LIMITS]: "NO_SPACE",
    [E.BEYOND_ACCOUNT_LIMITS]: "NO_SPACE",
    [E.MESSAGE_TOO_LARGE]: "TOO_LARGE",
    [E.HEADER_TOO_LARGE]: "TOO_LARGE",
    [E.NO_REPLICAS_WITHOUT_CLUSTER]: "BAD_VALUE",
    // A server that has just started, or was disconnected, does not know its streams yet.
    [E.STREAM_NOT_FOUND]: "JETSTREAM_UNAVAILABLE",
    [E.CONSUMER_NOT_FOUND]: "JETSTREAM_UNAVAILABLE",
    [E.WRONG_LAST_SEQUENCE_UNKNOWN]: "JETSTREAM_UNAVAILABLE",
    // Brokers are offline, full or have other tags: only the first is certain to end.
    [E.NO_SUITABLE_PEERS]: "JETSTREAM_UNAVAILABLE",
    // Statuses in the 500s that waiting does not change.
    [E.NOT_IN_A_CLUSTER]: "INTERNAL",
    [E.BAD_STREAM_CONFIG]: "INTERNAL",
    [E.BEYOND_STREAM_LIMITS]: "INTERNAL",
};
/** Statuses of requests that the broker did not process: timeout, too many requests, faults of its own. */
const TEMPORARY_STATUSES = { TIMEOUT: 408, TOO_MANY: 429, FAULT_MIN: 500 };
/**
 * Returns whether, by the broker's text, a stream's store refused a message because a limit was reached or
 * the disk is full. Any other text means that the store cannot write. One is "no message cache": a full disk
 * has cut off the first record of a file, and nats-server appends nothing to it until it is restarted.
 */
function isStoreFull(text) {
    return /exceeded|no space left/.test(text);
}
/**
 * Returns the code for a refusal of the JetStream API. JETSTREAM_UNAVAILABLE, which can be retried, stands
 * for Raft without a leader, a stream or consumer that is offline, an incomplete cluster, and any other
 * status of a server's fault; INTERNAL for an unknown refusal with another status.
 */
export function refusalCode({ status, errorCode, description }) {
    if (errorCode === E.STORE_FAILED)
        return isStoreFull(description) ? "JOURNAL_FULL" : "JOURNAL_FAULT";
    if (errorCode === E.NO_SUITABLE_PEERS && isStorageLacking(description))
        return "NO_SPACE";
    const code = REFUSAL_CODES[errorCode];
    if (code !== undefined)
        return code;
    const isPassing = status === TEMPORARY_STATUSES.TIMEOUT ||
        status === TEMPORARY_STATUSES.TOO_MANY ||
        status >= TEMPORARY_STATUSES.FAULT_MIN;
    return isPassing ? "JETSTREAM_UNAVAILABLE" : "INTERNAL";
}
/**
 * Returns the code for a refusal to store a message: as {@link refusalCode}, but JOURNAL_FULL instead of
 * NO_SPACE, because an existing stream gets room again, by snapshots or from whoever runs the broker.
 */
export function storeRefusalCode(refusal) {
    const code = refusalCode(refusal);
    return code === "NO_SPACE" ? "JOURNAL_FULL" : code;
}
/**
 * Returns the text of a refusal for people. That of a broker that cannot write says where the reason is. That of a
 * broker at its own limit says which limit it is: a broker that was started while its disk was full has none left,
 * and keeps it until it is started again.
 */
export function refusalText({ errorCode, description }) {
    if (errorCode === E.STORE_FAILED && !isStoreFull(description)) {
        return `${description}: see the broker's log, store/broker.log in the directory of pserver up or run, else log_file of its configuration or the log of its service`;
    }
    if (errorCode !== E.INSUFFICIENT_RESOURCES)
        return description;
    return `${description}: the broker's own limit is reached, max_file or else three quarters of what was free at its start`;
}
/** Returns whether a cluster has no place for a stream because its brokers, all present, are full. */
function isStorageLacking(description) {
    return description.includes("insufficient storage") && !description.includes("offline");
}
//# sourceMappingURL=jetstream-errors.js.map