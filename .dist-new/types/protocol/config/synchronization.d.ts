/**
 * How the trainers of a job keep step; set for the whole job and never changed.
 *
 * - `async`: each gradient is applied as it arrives.
 * - `sync`: a step applies the mean or sum of one gradient of each of `trainers` trainers; `backups`
 *   more may take part, whose gradients are left out where they are the last.
 * - `ssp` (stale synchronous parallel, Ho et al. 2013): gradients are applied when they come, but a
 *   pull waits while the slowest of `trainers` trainers is more than `staleness` steps behind.
 */
export type Synchronization = {
    readonly mode: "async";
} | {
    readonly mode: "sync";
    readonly trainers: number;
    readonly backups: number;
    readonly reduce: "mean" | "sum";
} | {
    readonly mode: "ssp";
    readonly trainers: number;
    readonly staleness: number;
};
/** A synchronization as callers give it. Defaults: `async`, no backups, the mean. */
export type SynchronizationInput = "async" | {
    readonly mode?: "async";
} | {
    readonly mode: "sync";
    readonly trainers: number;
    readonly backups?: number;
    readonly reduce?: "mean" | "sum";
} | {
    readonly mode: "ssp";
    readonly trainers: number;
    readonly staleness: number;
};
/**
 * Completes and checks a synchronization from a caller or a message.
 * @throws BAD_CONFIG for an unknown mode, an entry the mode does not have, or a number out of range:
 * trainers and backups together are 1 to `MEMBERS_MAX`.
 */
export declare function toSynchronization(input?: unknown): Synchronization;
/** Describes a synchronization: `sync of 4 trainers and 1 backup, mean`. */
export declare function synchronizationText(synchronization: Synchronization): string;
//# sourceMappingURL=synchronization.d.ts.map