import { Command } from "commander";
import type { HostOptions } from "../../actors/host/host.ts";
import type { EtcdSettings } from "../../actors/job/etcd-space.ts";
import { type Synchronization } from "../../protocol/config/index.ts";
/** Flags of a host that keeps its leases in etcd; each is undefined unless given. */
export interface EtcdFlags {
    readonly etcd?: readonly string[];
    readonly etcdPrefix?: string;
    readonly advertise?: readonly string[];
}
/** Adds the flags for the address of etcd. */
export declare function addEtcdPlaceOptions(command: Command): Command;
/**
 * Reads the flags as a host's setting; returns undefined without `--etcd`.
 * @throws BAD_VALUE for the other flags without it.
 */
export declare function toEtcdSetting(flags: EtcdFlags): EtcdSettings | undefined;
/** Quotas of a new job and of each of its trainers; each is undefined unless given. */
interface QuotaFlags {
    readonly quotaParameters?: number;
    readonly quotaBytes?: number;
    readonly trainerQuotaParameters?: number;
    readonly trainerQuotaBytes?: number;
}
/** How the trainers of a new job keep step; each is undefined unless given. */
export interface SynchronizationFlags {
    readonly sync?: Synchronization["mode"];
    readonly trainers?: number;
    readonly backups?: number;
    readonly reduce?: "mean" | "sum";
    readonly staleness?: number;
}
/** Settings of a host and, on its first start, of its job; each is undefined unless given. */
export interface HostFlags extends SynchronizationFlags, EtcdFlags, QuotaFlags {
    readonly workers?: number;
    readonly shards?: number;
    readonly journal?: "file" | "memory";
    readonly journalLimit?: number;
    readonly tape?: "on" | "off";
    readonly retain?: number;
    readonly memoryLimit?: number;
    readonly modelDir?: string;
    readonly acrossAccounts?: boolean;
}
/** Adds the flags of a host. The host knows their defaults, so flags that are not given are not passed on. */
export declare function addHostOptions(command: Command, modelDirectory: string): Command;
/** Adds the flags of a host that keeps its leases in the broker. */
export declare function addJobHostOptions(command: Command, modelDirectory: string): Command;
/** Writes the flags as arguments for a child process. */
export declare function hostArguments(flags: HostFlags): string[];
/** Reads the flags as settings. The host chooses those that are not given. */
export declare function toHostSettings(flags: HostFlags & {
    readonly job: string;
}): Omit<HostOptions, "connection">;
export {};
//# sourceMappingURL=host-options.d.ts.map