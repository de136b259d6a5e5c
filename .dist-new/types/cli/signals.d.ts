/** The part of the process that is watched. */
export type InterruptSource = Pick<NodeJS.Process, "on" | "exit" | "connected" | "channel">;
/**
 * Aborts at the first Ctrl-C, SIGTERM or SIGHUP, when the process that started this one with a channel
 * is gone, or when `readerGone` is aborted; ends the process at once at the second. Signals in `ignored`
 * change nothing.
 */
export declare function watchInterrupts(source: InterruptSource, readerGone?: AbortSignal, ignored?: ReadonlySet<IgnorableSignal>): AbortSignal;
/** Settles when the signal is aborted. */
export declare function untilAborted(signal: AbortSignal): Promise<void>;
/**
 * Waits for `work` and returns its result, unless the signal is aborted first; `work` itself goes on.
 * @throws the signal's reason.
 */
export declare function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T>;
/**
 * Signals that somebody may have asked a command to ignore: with `nohup`, or by starting it with `&` in a
 * script.
 */
export type IgnorableSignal = "SIGHUP" | "SIGINT" | "SIGQUIT" | "SIGTERM";
/** What is known about the start of a process. */
export interface ProcessStart {
    /**
     * Value of `PSERVER_IGNORED_SIGNALS`, which the first lines of the program set; undefined if Node.js was
     * started by itself.
     */
    readonly variable: string | undefined;
    /** Whether one of the standard streams is a terminal, and its output goes to files. */
    readonly hasTerminal: boolean;
    readonly printsToFiles: boolean;
    /** Whether it is a job that a shell without job control has put into the background. */
    readonly isBackgroundJob: boolean;
}
/**
 * Returns the signals that this process was started to ignore. Node.js sets all signals to their defaults
 * before it runs a program, so the shell lines at the beginning of `pserver` and `legion` look first and tell
 * by a variable. It is removed here, because it is not for the processes that this one starts. Call it once,
 * before those.
 */
export declare function takeIgnoredSignals(environment?: NodeJS.ProcessEnv): ReadonlySet<IgnorableSignal>;
/**
 * Returns the signals that a process was started to ignore. Without the variable, as when somebody has started
 * `node dist/pserver.js`, they follow from what `nohup` and shells do besides: `nohup` leaves no stream at a
 * terminal, and a shell without job control gives its background jobs no input and its own process group.
 */
export declare function ignoredSignals(start: ProcessStart): ReadonlySet<IgnorableSignal>;
//# sourceMappingURL=signals.d.ts.map