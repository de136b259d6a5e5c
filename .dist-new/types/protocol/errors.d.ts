/**
 * Returns whether a text is printable ASCII: {@link visible} leaves it as it is, and each character takes a
 * column.
 */
export declare function isPlain(text: string): boolean;
/**
 * Makes names, paths and messages from elsewhere safe to show: characters that would command a terminal or
 * turn the text round are escaped as `\x1b`, `\u202e`, `\u{e0001}`.
 */
export declare function visible(text: string): string;
/** A row of the table of error codes. */
interface ErrorRow {
    /** The stable number of the C enum; never reused. */
    readonly number: number;
    /** Whether the unchanged call can succeed later. */
    readonly retryable: boolean;
    /** The line that the documentation prints. */
    readonly meaning: string;
    /** What a client does if the code is in an answer; by default `retry` if it is retryable, else `fail`. */
    readonly reaction?: Reaction;
    /** What a client does if the code is the outcome of a record; by default `fail`. */
    readonly rejection?: RejectionReaction;
}
/** Every error code of the system: one table for TypeScript, C and Python. */
export declare const ERROR_CODES: {
    BAD_MESSAGE: ErrorRow;
    BAD_CHECKSUM: ErrorRow;
    BAD_VERSION: ErrorRow;
    BAD_NAME: ErrorRow;
    BAD_DTYPE: ErrorRow;
    BAD_SHAPE: ErrorRow;
    BAD_LENGTH: ErrorRow;
    BAD_VALUE: ErrorRow;
    BAD_CONFIG: ErrorRow;
    BAD_REPLY: ErrorRow;
    NON_FINITE: ErrorRow;
    NO_LEARNING_RATE: ErrorRow;
    UNSUPPORTED: ErrorRow;
    EMPTY: ErrorRow;
    TOO_LARGE: ErrorRow;
    UNKNOWN_PARAMETER: ErrorRow;
    STATIC: ErrorRow;
    BAD_INDEX: ErrorRow;
    NOT_INITIALIZED: ErrorRow;
    ALREADY_INITIALIZED: ErrorRow;
    NOT_SELECTED: ErrorRow;
    STALE_EPOCH: ErrorRow;
    INCOMPLETE: ErrorRow;
    NO_SPACE: ErrorRow;
    JOB_EXISTS: ErrorRow;
    SUPERSEDED: ErrorRow;
    REJOIN: ErrorRow;
    SETTLED: ErrorRow;
    WINDOW: ErrorRow;
    TOO_MANY_TRAINERS: ErrorRow;
    LATE: ErrorRow;
    EARLY: ErrorRow;
    NOT_MEMBER: ErrorRow;
    QUOTA: ErrorRow;
    JOB_DAMAGED: ErrorRow;
    JOURNAL_FULL: ErrorRow;
    JOURNAL_DAMAGED: ErrorRow;
    JOURNAL_LOST: ErrorRow;
    JOURNAL_REPLACED: ErrorRow;
    SNAPSHOT_DAMAGED: ErrorRow;
    UNKNOWN_RULES: ErrorRow;
    JOURNAL_FAULT: ErrorRow;
    HISTORY_LOST: ErrorRow;
    FOLD_FAILED: ErrorRow;
    NO_OWNER: ErrorRow;
    NOT_OWNER: ErrorRow;
    BUSY: ErrorRow;
    NO_HOST: ErrorRow;
    NO_MEMORY: ErrorRow;
    TIMEOUT: ErrorRow;
    OUTCOME_UNKNOWN: ErrorRow;
    ABORTED: ErrorRow;
    CLOSED: ErrorRow;
    NO_BROKER: ErrorRow;
    NO_JETSTREAM: ErrorRow;
    BROKER_TOO_OLD: ErrorRow;
    PAYLOAD_TOO_SMALL: ErrorRow;
    DENIED: ErrorRow;
    NO_ETCD: ErrorRow;
    JETSTREAM_UNAVAILABLE: ErrorRow;
    NO_TLS: ErrorRow;
    ADDRESS_IN_USE: ErrorRow;
    BAD_PATH: ErrorRow;
    BAD_FILE: ErrorRow;
    MISSING_SHARD: ErrorRow;
    IO: ErrorRow;
    DISK_FULL: ErrorRow;
    STORE_IN_USE: ErrorRow;
    BAD_ARCHIVE: ErrorRow;
    INTERNAL: ErrorRow;
};
/** Code of a {@link PserverError}; the same words in C (`PSERVER_ERR_…`) and Python. */
export type ErrorCode = keyof typeof ERROR_CODES;
/** Details of an error, by name: who is involved, and the expected and received values. */
export interface ErrorDetails {
    readonly [name: string]: unknown;
}
/** Returns what a client does about a code in the answer to a request or a question. */
export declare function reactionTo(code: ErrorCode): Reaction;
/** Returns what a client does about a code that is the outcome of a record, unless it {@link endsSession}. */
export declare function reactionToRejection(code: ErrorCode): RejectionReaction;
/**
 * Returns whether a question that got this error is asked again, unchanged, until its deadline, because the
 * cause can pass by itself. NOT_INITIALIZED does not count: it may wait for the asker itself.
 */
export declare function healsWithTime(code: ErrorCode): boolean;
/** Returns whether the code says that a session is over. It then says nothing about the request or record. */
export declare function endsSession(code: ErrorCode): boolean;
/** Returns whether the code tells an initializing trainer that another one has taken over. */
export declare function yieldsInit(code: ErrorCode): boolean;
/** An error as a reply carries it: `{error: {code, message, details?}}`. */
export interface WireError {
    readonly code: string;
    readonly message: string;
    readonly details?: ErrorDetails;
}
/** The only error class of the project: `code` is for programs, `message` for people. */
export declare class PserverError extends Error {
    readonly name: string;
    readonly code: ErrorCode;
    readonly details: ErrorDetails;
    constructor(code: ErrorCode, message: string, details?: ErrorDetails, options?: {
        cause?: unknown;
    });
    /** Whether the unchanged call can succeed later. */
    get retryable(): boolean;
    /** Returns this error as replies carry it; details that a message cannot hold are cut or described. */
    toWire(): WireError;
}
/** Returns whether `text` is a code of the table. */
export declare function isErrorCode(text: string): text is ErrorCode;
/**
 * Makes the error that a reply carried. A code of a newer server, which this version does not know, becomes
 * `INTERNAL` with the sender's code in `details.code`.
 */
export declare function errorFromWire(wire: WireError): PserverError;
/** Returns `error` itself if it is one of ours, else an `INTERNAL` error caused by it. */
export declare function ensureError(error: unknown): PserverError;
/**
 * Makes the error for something that is not as expected: `what: expected …; received …`, with these details.
 */
export declare function mismatch(code: ErrorCode, what: string, expected: string | number, received: string | number, details?: ErrorDetails, options?: ErrorOptions): PserverError;
/** Pause before asking again if BUSY names none. */
export declare const RETRY_AFTER_MS = 250;
/** Longest pause that an asker takes from BUSY. */
export declare const RETRY_AFTER_MS_MAX = 5000;
/**
 * Makes the error BUSY. Its details name the limit that was reached, and in `retryAfterMs` how long to wait.
 */
export declare function busy(message: string, bound: ErrorDetails & {
    readonly expected: number;
}, waitMs?: number): PserverError;
/** Returns the pause before asking again that an error names, at most 5 s; 0 if it names none. */
export declare function retryAfterMs({ details }: PserverError): number;
/**
 * What a client does about an error in the answer to a request or a question: the words of the column
 * `reaction` in the table of error codes, and what each means.
 */
export declare const REACTIONS: {
    readonly fail: "the call fails with the code";
    readonly retry: "the same request is sent again after a pause";
    readonly "await-init": "a call that waits for initialization asks again; any other fails";
    readonly "yield-init": "another trainer initializes instead: a call that waits for it goes on, others fail";
    readonly "look-up": "the parameter has a newer epoch and is looked up again; who initialized it yields";
    readonly replaced: "the request goes on in the journal that the error names; older records are lost";
    readonly lost: "records behind the end of the shard's journal are lost; the call fails";
    readonly "enter-anew": "the call fails, but a read goes on without waiting for a step; the next gradient enters the steps anew";
    readonly rejoin: "the session is over: the client joins again";
    readonly end: "the id belongs to a newer session: the client can do nothing more";
};
/** See {@link REACTIONS}. */
export type Reaction = keyof typeof REACTIONS;
/**
 * What a client does about a code that is the outcome of a record, where that differs from the
 * reaction to the code in an answer: the words of the column `rejection` in the table of error codes.
 */
export declare const REJECTION_REACTIONS: {
    readonly fail: "the call fails with the code";
    readonly "resend-unseen": "a gradient that names the version it was made from is sent again without it";
    readonly "resend-in-step": "the trainer enters the steps anew and sends the gradient once more";
    readonly "count-late": "a call that allows for late gradients counts it; any other fails";
    readonly "count-present": "a repeated initialization counts it as applied; any other fails";
    readonly forgotten: "the outcome stays unknown";
};
/** See {@link REJECTION_REACTIONS}. */
export type RejectionReaction = keyof typeof REJECTION_REACTIONS;
export {};
//# sourceMappingURL=errors.d.ts.map