import { PserverError, type Synchronization } from "../../protocol/index.ts";
import { type Position } from "../../protocol/messages/position.ts";
import type { JournalSettings } from "../journal/journal.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import type { EtcdSpace } from "./etcd-space.ts";
/** Origin of a job that was made from a point of another job's history; an entry of its settings. */
export interface ForkOrigin {
    /** The other job. */
    readonly of: string;
    /** When it was made, in milliseconds since 1970. */
    readonly madeMs: number;
    /** Position of each shard of the other job from which this job's shards go on. */
    readonly at: readonly Position[];
    /** Token of the run that is making it; absent once it is complete. No host joins it before. */
    readonly pending?: string;
}
/** Returns settings with a fork's origin, in place of any that they have. */
export declare function withForkOrigin(settings: object, origin: ForkOrigin): unknown;
/**
 * Reads a fork's origin from stored settings; undefined if they have none.
 * @throws BAD_MESSAGE if it is malformed.
 */
export declare function forkOriginOf(stored: unknown): ForkOrigin | undefined;
/** Whether stored settings are those of a fork that is being made, or whose making was interrupted. */
export declare function isPendingFork(stored: unknown): boolean;
/** Limits of what a job and each of its trainers may declare; fixed when the job is made. */
export interface Quotas {
    /** Names that were ever declared; 65,536 by default. */
    readonly parametersMax: number;
    /** Bytes of values and optimizer state of all declared parameters; 1 TiB by default. */
    readonly heldBytesMax: number;
    /** The same for one trainer; a parameter counts for the trainer that declared it last. */
    readonly trainerParametersMax: number;
    readonly trainerHeldBytesMax: number;
}
/** Returns the quotas in settings; those of a trainer are the job's by default. */
export declare function quotasOf(wanted?: Partial<Quotas>): Quotas;
/** Version of the settings. */
declare const FORMAT = 1;
/** Settings that are fixed when a job is made; in KV as plain JSON. */
export interface StoredSettings extends Quotas {
    readonly format: typeof FORMAT;
    /** Version of the rules that all journals begin with. */
    readonly rules: number;
    readonly shards: number;
    readonly journal: "file" | "memory";
    readonly leaseMs: number;
    /** Where the leases are: `kv`, or `etcd` and the identity of the etcd that holds them. */
    readonly leases: string;
    /** The most bytes of one shard's journal. */
    readonly journalBytesMax: number;
    readonly replicas: number;
    /** How the trainers keep step. */
    readonly synchronization: Synchronization;
    /** Whether hosts write a tape. */
    readonly tape: boolean;
}
/** Settings of a job that its lifecycle depends on, and the job's name. */
export interface JobSettings extends Pick<StoredSettings, "shards" | "journal" | "leaseMs" | "synchronization"> {
    readonly job: string;
    readonly quotas: Quotas;
}
/** Settings that a host asks for; the job's own settings, or defaults, hold for the rest. */
export type WantedSettings = Partial<Omit<StoredSettings, "format" | "rules" | "leases">>;
/** Wanted settings with the place of the leases, which every host names. */
export type WantedWithLeases = WantedSettings & Pick<StoredSettings, "leases">;
/** {@link StoredSettings.leases} of a job that uses no etcd. */
export declare const LEASES_IN_KV = "kv";
/** Key of the settings in the job's bucket. */
export declare const SETTINGS_KEY = "settings";
/** Makes the settings of a new job. @throws BAD_VALUE for a number of shards out of range. */
export declare function newSettings(wanted: WantedWithLeases, findJournalBytes: (journal: "file" | "memory", shards: number) => Promise<number>): Promise<StoredSettings>;
/** Reads the settings in a job's bucket. @throws BAD_MESSAGE if they are not valid, UNKNOWN_RULES. */
export declare function parseSettings(value: unknown): StoredSettings;
/** Returns how the journals of a job are kept, by its settings. */
export declare function journalSettings(settings: StoredSettings): JournalSettings;
/** Returns {@link StoredSettings.leases} of a job whose leases are in this etcd, or without one in the broker. */
export declare function leasesIn(etcd: Pick<EtcdSpace, "id"> | undefined): string;
/** Returns the settings of a job with a flag that it is being removed, so that no host joins it or makes it again. */
export declare function withRemovalFlag(stored: unknown): unknown;
/** Whether stored settings have the flag of {@link withRemovalFlag}. */
export declare function hasRemovalFlag(stored: unknown): boolean;
/** Makes the error for settings that somebody else has written since they were read. */
export declare function settingsChanged(job: string): PserverError;
/** Dependencies of {@link settleSettings}. */
export interface SettlingDeps {
    readonly bucket: KvBucket;
    readonly job: string;
    readonly findJournalBytes: (journal: "file" | "memory", shards: number) => Promise<number>;
    /** Waits between tries. */
    readonly pause?: (delayMs: number) => Promise<void>;
}
/**
 * Reads a job's settings, or writes them if this host is the first. Of hosts that begin at one time one writes
 * them. In a cluster the others' writes are refused before that one can be read, or even if it never will be
 * because the leader dies: they look and try again.
 * @throws as `agreeOnSettings` and `newSettings`; JETSTREAM_UNAVAILABLE if the settings can be neither read nor
 * written for 10 s; TIMEOUT as {@link BucketEntry.change} does.
 */
export declare function settleSettings({ bucket, job, findJournalBytes, pause }: SettlingDeps, wanted: WantedWithLeases): Promise<StoredSettings>;
export {};
//# sourceMappingURL=job-settings.d.ts.map