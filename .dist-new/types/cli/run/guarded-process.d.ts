import { type Variables } from "./launch.ts";
import type { TrainerOutput } from "./trainer-output.ts";
/**
 * The shell program that runs one trainer and ends it with its launcher. The launcher writes to its
 * standard input: first one line of shell that sets the command and its variables, then names of signals
 * for the whole process group. When the input ends, because the launcher or the connection has ended, the
 * group gets SIGTERM and, after a grace period, SIGKILL. The exit code is the trainer's, as in shells.
 *
 * It holds no newline, single quote, backslash or exclamation mark, so that any login shell takes it in
 * single quotes.
 */
export declare const GUARD: string;
/** Command and variables of a trainer. */
export interface GuardedStart {
    readonly command: readonly string[];
    /** Variables to add to what the guard has, or to remove from it. */
    readonly variables: Variables;
    /** Variables to add where the guard has none of the name. */
    readonly defaults?: Variables;
    /** Where to run, if not where the guard does. */
    readonly directory?: string;
}
/** Writes the first line for {@link GUARD}, with its newline. */
export declare function startLine({ command, variables, defaults, directory }: GuardedStart): string;
/** Describes an exit code for people, with the signal that it stands for. */
export declare function inWords(exitCode: number): string;
/** A trainer to run under a guard. */
export interface GuardedProcessOptions {
    /** What runs the guard: `sh -c GUARD`, here or behind ssh. */
    readonly program: readonly [program: string, ...args: string[]];
    readonly environment: Readonly<Record<string, string | undefined>>;
    /** The guard's first line: the command and its variables. */
    readonly startLine: string;
    readonly rank: number;
    readonly output: TrainerOutput;
}
/** A trainer and its process group, which ends when this process does, however that ends. */
export declare class GuardedProcess {
    #private;
    private constructor();
    /** Starts a trainer under its guard. */
    static start(options: GuardedProcessOptions): GuardedProcess;
    /**
     * Settles with the exit code when the process has ended, its group is gone and its output is printed;
     * with 128 and the signal's number if a signal ended it. Rejects with IO if it cannot be run.
     */
    get ended(): Promise<number>;
    /** Sends a signal to the whole group, here or on the machine where it runs. */
    signal(name: "INT" | "TERM" | "KILL"): void;
    /** Ends the group, or the connection to it, with SIGKILL. */
    kill(): void;
}
//# sourceMappingURL=guarded-process.d.ts.map