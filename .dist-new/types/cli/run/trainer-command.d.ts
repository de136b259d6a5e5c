import type { RunFlags } from "./run-flags.ts";
/** The command that a trainer runs. */
export type TrainerCommand = readonly [program: string, ...args: string[]];
/** Returns the script that a command runs: an interpreter's first argument, else the program itself. */
export declare function scriptOf([program, first]: TrainerCommand): string;
/**
 * Checks that the program of a command can be found, and its script.
 * @throws BAD_VALUE if it cannot.
 */
export declare function checkCommand(command: TrainerCommand, path: string | undefined): void;
/** @throws BAD_VALUE if there is no such file. */
export declare function checkScript(script: string): void;
/**
 * Checks that the program that a launcher needs can be found. `--dry-run` needs none.
 * @throws BAD_VALUE if it is missing.
 */
export declare function checkProgram({ launcher, dryRun }: RunFlags, program: string, environment: Readonly<Record<string, string | undefined>>): void;
/** Returns the path of a program as a shell finds it; undefined if there is none. */
export declare function findExecutable(program: string, path?: string): string | undefined;
/** The result of a program. */
export interface ProgramAnswer {
    readonly code: number;
    readonly stdout: string;
    readonly stderr: string;
}
/** How to run a short program. */
export interface RunProgramOptions {
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly directory?: string;
    readonly timeoutMs: number;
}
/** Runs a program, and kills it after `timeoutMs`; if it cannot be run, the code is 127. */
export declare function runProgram([program, ...args]: readonly [program: string, ...args: string[]], { environment, directory, timeoutMs }: RunProgramOptions): Promise<ProgramAnswer>;
/**
 * Checks that the Python of a command finds the package `legion` or `pserver` that its script imports, and
 * numpy, which both need. Without the check every trainer would fail at each restart. A script that
 * changes `sys.path` is not checked.
 * @throws BAD_VALUE if one is missing.
 */
export declare function checkPythonScript(command: readonly string[], environment: Readonly<Record<string, string | undefined>>): Promise<void>;
//# sourceMappingURL=trainer-command.d.ts.map