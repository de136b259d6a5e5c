import { type MessagePort, type Worker } from "node:worker_threads";
import { PserverError } from "../protocol/index.ts";
type Argument<Call> = Call extends (argument: infer Value) => unknown ? Value : never;
type Result<Call> = Call extends (...values: never[]) => infer Value ? Value : never;
/** Reports how far the work on a call has come; each call defines what its numbers mean. */
export type Progress = (...counts: number[]) => void;
/** Functions that answer the calls of an interface in a worker thread. */
export type Handlers<Calls> = {
    readonly [Verb in keyof Calls]: (argument: Argument<Calls[Verb]>, progress: Progress) => Result<Calls[Verb]> | Promise<Result<Calls[Verb]>>;
};
/** The part of a worker thread that calls need. */
export type CalledWorker = Pick<Worker, "on" | "postMessage" | "terminate">;
/** A worker thread that runs {@link serveThread}, seen from the thread that has started it. */
export declare class WorkerThread<Calls, Event = never> {
    #private;
    /** Resolves when the thread answers calls; fails like {@link ask} if the thread ends before. */
    readonly ready: Promise<void>;
    /** Why the thread has ended; pending until then. */
    readonly ended: Promise<PserverError>;
    /** `name` names the thread in errors. `onEvent` is called with each event that the thread emits. */
    constructor(worker: CalledWorker, name: string, onEvent?: (event: Event) => void);
    /**
     * Sends a call to the thread and returns the answer; waits until the thread is ready. Throws the error of the work,
     * or the error that ended the thread.
     */
    ask<Verb extends keyof Calls & string>(verb: Verb, argument: Argument<Calls[Verb]>, onProgress?: Progress): Promise<Result<Calls[Verb]>>;
    /** Ends the thread at once and frees its memory; open calls fail with `reason`. */
    stop(reason: PserverError): Promise<void>;
}
/**
 * Answers the calls to this worker thread with the handlers that `start` returns, until the thread is ended. `start`
 * may send events with `emit`. If it fails, the thread ends with that error.
 */
export declare function serveThread<Calls, Event = never>(start: (emit: (event: Event) => void) => Promise<Handlers<Calls>>, port?: Pick<MessagePort, "on" | "postMessage"> | null): Promise<void>;
export {};
//# sourceMappingURL=worker-thread.d.ts.map