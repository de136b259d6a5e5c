import { PserverError } from "../../protocol/errors.ts";
import type { ConnectionFlags } from "../options/connection-options.ts";
import type { EtcdFlags, HostFlags } from "../options/host-options.ts";
import type { OutputFlags } from "../output/output.ts";
/** Where trainers can be started. */
export declare const LAUNCHERS: readonly ["local", "ssh", "slurm", "pbs"];
/** One of {@link LAUNCHERS}. */
export type LauncherName = (typeof LAUNCHERS)[number];
/** Flags of `pserver run`. */
export interface RunFlags extends Omit<HostFlags, keyof EtcdFlags>, ConnectionFlags, OutputFlags {
    readonly job: string;
    readonly instances: number;
    readonly trainer: string;
    readonly restarts: number;
    /** Values by name; undefined for a variable that trainers shall not have. */
    readonly env?: Readonly<Record<string, string | undefined>>;
    readonly torchEnv?: boolean;
    readonly devices?: readonly string[];
    readonly save?: string;
    /** Seconds. */
    readonly walltime?: number;
    readonly hosts?: number;
    readonly port?: number;
    readonly store?: string;
    readonly durable?: boolean;
    readonly noToken?: boolean;
    readonly launcher: LauncherName;
    readonly advertise?: string;
    readonly machines?: string;
    readonly account?: string;
    readonly queue?: string;
    readonly constraint?: string;
    readonly gpus?: number;
    readonly maxSimultaneous?: number;
    readonly dryRun?: boolean;
}
/** Writes a flag as on the command line. */
export declare function flagOf(name: keyof RunFlags): string;
/** @throws BAD_VALUE if one of these flags is given, which the launcher does not have. */
export declare function refuseFlags(flags: RunFlags, names: readonly (keyof RunFlags)[]): void;
/** Parses a wall time as batch systems write it: `12:00:00`, or `1-12:00:00` with days; returns seconds. */
export declare function parseWallTime(text: string): number;
/** Writes seconds as `HH:MM:SS`, which every batch system accepts; hours may be more than 24. */
export declare function formatWallTime(seconds: number): string;
/** Settles with ABORTED once the wall time has passed; never if there is none, or `signal` is aborted first. */
export declare function wallTimeOver(seconds: number | undefined, signal: AbortSignal): Promise<PserverError>;
//# sourceMappingURL=run-flags.d.ts.map