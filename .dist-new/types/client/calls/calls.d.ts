import type { Encoding, TensorData } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { Tensor } from "../../protocol/tensor.ts";
/** Options of every call. */
export interface CallOptions {
    /**
     * Timeout of the whole call. Without it a call ends when it has made no progress for 30,000 ms, or what the call
     * states: bytes that come or go, acknowledgements and answers are progress.
     */
    readonly timeoutMs?: number;
    /** Ends the call with `ABORTED`. */
    readonly signal?: AbortSignal;
}
/**
 * The end of a call: by its timeout, by its caller, or with the client. Everything that a call waits for
 * listens to it, so that no part of a call outlives the call.
 */
export declare class Deadline {
    #private;
    /** Name of the call, for messages. */
    readonly what: string;
    /** Returns why the call's request is not answered yet: the last error after which it is sent again. */
    obstacle: () => PserverError | undefined;
    private constructor();
    /**
     * Begins a call; {@link dispose} must be called when it is over.
     * @throws BAD_VALUE if `timeoutMs` is out of range, ABORTED if the signal is aborted already.
     */
    static start(what: string, options?: CallOptions, defaultMs?: number): Deadline;
    /** Why the call has ended; undefined while it may go on. */
    get ended(): PserverError | undefined;
    /** The time left, never below 0. */
    get remainingMs(): number;
    /** Notes that the call has made progress, after which it has its whole time again unless its caller has set one. */
    progressed(): void;
    /**
     * Returns whether the call can sleep for this delay. Also true if it has ended by anything but its timeout:
     * sleeping then fails with that error, which says more than the error that the caller would report.
     */
    allows(delayMs: number): boolean;
    /** Ends the call with an error; only the first end counts. */
    end(error: PserverError): void;
    /** Calls `listener` when the call ends, at once if it has. Returns what stops listening. */
    onEnd(listener: (error: PserverError) => void): () => void;
    /** Waits for a time; @throws what ended the call, if it ends first. */
    sleep(ms: number): Promise<void>;
    /**
     * Returns the result of `work`. `other` is the deadline of the request that it waits for, if several calls share
     * that. @throws what ended the call, if it ends first: at its timeout, the request's obstacle.
     */
    race<T>(work: Promise<T>, other?: () => Deadline | undefined): Promise<T>;
    /** Releases the timer and the signal when the call is over. */
    dispose(): void;
}
/** Returns the error of what a call waited for, at the call's end: at its timeout, the last obstacle. */
export declare function orObstacle(end: PserverError, last: PserverError | undefined): PserverError;
/**
 * Growing delays between attempts: from 50 ms, doubled up to 500 ms, each shortened at random by up to a
 * quarter so that trainers that failed together do not retry together.
 */
export declare class Backoff {
    #private;
    /** Returns the delay before the next attempt. */
    nextMs(): number;
}
/**
 * Parses a duration as the `nats` command takes it, such as `5s`, `500ms` or `1m30s`; returns milliseconds.
 * @throws BAD_VALUE for any other text.
 */
export declare function parseDuration(text: string, what: string): number;
/** Waits for all promises, so that none outlives the call. @throws the first error. */
export declare function allOrFirstError<T>(work: readonly Promise<T>[]): Promise<T[]>;
/** The calls under way. Each has a deadline, and all end when the client does. */
export declare class Calls {
    #private;
    /** The error that ended the client; undefined while it can be used. */
    get failure(): PserverError | undefined;
    /**
     * Runs a call under its deadline.
     * @throws CLOSED after {@link close}, or the error that ended the client.
     */
    run<T>(what: string, options: CallOptions | undefined, call: (deadline: Deadline) => Promise<T>, defaultMs?: number): Promise<T>;
    /** Ends every call with an error and refuses all later ones with it. */
    fail(error: PserverError): void;
    /** Refuses new calls, waits for those under way until the deadline, then ends them. */
    close(deadline: Deadline): Promise<void>;
}
/** Options of a call that reads parameters. */
export interface ReadOptions extends CallOptions {
    /** Transfers float32 values in fewer bytes, rounded as the encoding defines. */
    readonly encoding?: Encoding;
}
/** A parameter's values, with its name. */
export interface NamedTensor extends Tensor {
    readonly name: string;
    /**
     * Number of changes of the parameter; initialization is the first and each update adds 1. For several
     * blocks, which are not read at one moment, the highest of theirs.
     */
    readonly version: number;
}
/** Arrays to read into, by parameter name. */
export type Into = Readonly<Record<string, TensorData>>;
/** Options of `Client.getParams`. */
export interface PullOptions extends ReadOptions {
    /** Arrays to read into, by parameter name. */
    readonly into?: Into;
    /**
     * Results of earlier calls, whose arrays nobody has changed: only blocks that have changed since are sent.
     * A parameter of which nothing has changed is returned as the same result. Of any other, the unchanged
     * blocks are copied from the known array, which stays as it is unless it is also in `into`. Results of
     * another encoding or initialization are not used, nor are copies of results.
     */
    readonly known?: readonly NamedTensor[];
}
/** When an update is done: folded by the shard's owner, or stored in the journal. */
export type Ack = "applied" | "stored";
/** Options of a call that changes parameters. */
export interface UpdateOptions extends CallOptions {
    /**
     * `applied` (default): the call is done when the shards' owners have applied every block update. `stored`:
     * the call is done when the journals hold every block update; a later rejection is not reported.
     */
    readonly ack?: Ack;
}
/** Options of an update whose elements can travel encoded. */
export interface PushOptions extends UpdateOptions {
    /**
     * Transfers float32 elements in fewer bytes, rounded to nearest as the encoding defines: `bfloat16` and `float16` in
     * half of them, `int8` in a quarter and `e3m0` in an eighth.
     */
    readonly encoding?: Encoding;
}
/** Options of `Client.sendGrads`. */
export interface GradOptions extends PushOptions {
    /** Overrides the learning rate of every parameter in the call. */
    readonly learningRate?: number;
    /**
     * Whether what rounding to `int8` or `e3m0` leaves out of a gradient is added to the next gradient of the same
     * elements that is encoded so; true by default. The client keeps it, a float32 for each element of the parameters
     * whose gradients are sent so, from the moment in which a gradient is given to the connection, even if it is
     * rejected or comes too late for its step; it forgets it after a fallback and when the parameter is initialized
     * again. The norm of a gradient that is clipped by it includes what calls before have left out by the time of the
     * call.
     */
    readonly errorFeedback?: boolean;
    /**
     * Whether this call is the last one of the trainer's step, in a job that is synchronized by steps; true by
     * default. If false, more calls follow, and then `Client.endStep`.
     */
    readonly endStep?: boolean;
}
/** Options of `Client.beginInit`. */
export interface BeginOptions extends CallOptions {
    /** Whether to wait while another trainer initializes; true by default. */
    readonly wait?: boolean;
}
//# sourceMappingURL=calls.d.ts.map