import { Command } from "commander";
import { type CliProcess } from "../context.ts";
import { type LauncherName } from "./run-flags.ts";
/** Flags of `legion`, under the names that they have always had. */
export interface LegionFlags {
    readonly instances?: number;
    readonly walltime: string;
    readonly debug?: boolean;
    readonly debug_pycharm?: boolean;
    readonly debug_devices?: string;
    readonly allocation?: string;
    readonly job_name: string;
    readonly user_script_args: string;
    readonly log_level?: number;
    readonly max_simultaneous_instances?: number;
    readonly want_helios_k80?: boolean;
    readonly launcher?: LauncherName;
    readonly gpus?: number;
    readonly advertise?: string;
    readonly save?: string;
    readonly restarts?: number;
}
/** Makes the command line of `legion`; `act` is called with the script and the flags. */
export declare function legionCommand(act: (script: string, flags: LegionFlags) => Promise<void>): Command;
/** Runs one command line of `legion`, without the program's name; returns the exit code and never throws. */
export declare function runLegion(args: readonly string[], cliProcess: CliProcess): Promise<number>;
/**
 * Translates a command line of `legion` into one of `pserver`.
 * @throws BAD_VALUE for flags that exclude each other, and for a missing script.
 */
export declare function toRunArguments(script: string, flags: LegionFlags, path: string | undefined): string[];
//# sourceMappingURL=run-legion.d.ts.map