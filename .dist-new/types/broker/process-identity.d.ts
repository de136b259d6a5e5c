/**
 * Identity of a process. Pids are reused, after a reboot at once, so `birth` tells processes with the
 * same pid apart: the first digits of the boot id and the start time in clock ticks, or `"unknown"`
 * on a system without `/proc`.
 */
export interface ProcessIdentity {
    readonly pid: number;
    readonly birth: string;
}
/** Identifies the process that has this pid now; undefined if none has. */
export declare function identifyProcess(pid: number): ProcessIdentity | undefined;
/** Fields of `/proc/<pid>/stat`. */
export interface ProcessStat {
    /** Name of the program: at most 15 bytes. */
    readonly name: string;
    /** One letter; `Z` and `X` are those of a process that has ended. */
    readonly state: string | undefined;
    readonly parent: number;
    readonly group: number;
    /** Foreground process group of its terminal; -1 without a terminal. */
    readonly foregroundGroup: number;
    /** Clock ticks from the start of the system to that of the process. */
    readonly startTicks: string | undefined;
}
/** Reads what the kernel says of a process; undefined if there is no such process, or no `/proc`. */
export declare function readProcessStat(pid: number): ProcessStat | undefined;
/** Returns whether the process is still alive, and is not another one under the same pid. */
export declare function isAlive(identity: ProcessIdentity): boolean;
//# sourceMappingURL=process-identity.d.ts.map