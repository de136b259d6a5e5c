import { type PserverError } from "../protocol/errors.ts";
/** How often in a row a broker or host is restarted that fails, or ends within {@link STEADY_MS}. */
export declare const RESTARTS_MAX = 5;
/** Running time after which earlier failures do not count any more. */
export declare const STEADY_MS = 60000;
/** A running process or host. */
export interface Run<End> {
    /** Settles with how it ended. */
    readonly ended: Promise<End>;
}
/** How something is kept running. */
export interface Supervision<End> {
    /** Starts it again; settles when it runs. A start that fails counts like one that ends at once. */
    readonly start: () => Promise<Run<End>>;
    /** Says why it has ended, as the beginning of a sentence; undefined if it is not to be started again. */
    readonly describe: (end: End) => string | undefined;
    /** Says why it did not start; by default with the error's message. */
    readonly describeFailedStart?: (error: PserverError) => string;
    /** Restarts in a row that may fail. */
    readonly restartsMax: number;
    /** Is aborted when it is stopped: then it is not started again. */
    readonly signal: AbortSignal;
    readonly onMessage: (text: string) => void;
    /** Waits before a restart, or rejects when the signal is aborted; by default a timer. */
    readonly pause?: Pause | undefined;
}
/** Waits for `delayMs`, or rejects when the signal is aborted. */
export type Pause = (delayMs: number, signal: AbortSignal) => Promise<void>;
/** How something has ended for good. */
export interface Ended<End> {
    readonly end: End;
    /** Number of attempts to start it again. */
    readonly restarts: number;
    /** Why the last run ended or did not start, as {@link Supervision} describes it. */
    readonly reason: string | undefined;
    /** The error of the last start, if it failed. */
    readonly cause: PserverError | undefined;
}
/**
 * Starts something again each time it ends, until it has ended for good or failed too often in a row. The
 * pause before it is 0.5 s, and doubles with each start in a row, up to 30 s.
 * Settles with undefined when it has ended after it was stopped. Rejects as `ended` does.
 */
export declare function supervise<End>(first: Run<End>, supervision: Supervision<End>): Promise<Ended<End> | undefined>;
//# sourceMappingURL=supervise.d.ts.map