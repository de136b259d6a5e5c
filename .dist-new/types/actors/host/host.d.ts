import type { NatsConnection } from "@nats-io/transport-node";
import { type JobSubjects, PserverError, type SynchronizationInput } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { type EtcdSettings, type EtcdSpace } from "../job/etcd-space.ts";
import { type StoredSettings, type WantedSettings } from "../job/job-settings.ts";
import { type OpenedJob } from "../job/open-job.ts";
import type { OwnersClient } from "../job/owners-client.ts";
import type { ContinuedShard } from "../journal/next-generation.ts";
import type { TakenBack } from "../lifecycle/initialization.ts";
import type { RefusalBudget } from "../owner/fair-server.ts";
import type { ShardTrouble } from "../owner/serving-shard.ts";
import type { TakeOverProgress } from "../owner/take-over.ts";
import { type SaveQuotas } from "./save-quotas.ts";
import { type WorkerPoolEvents } from "./worker-pool.ts";
/** Options of `startHost`; settings are for a new job, and must agree with those of an existing one. */
export interface HostOptions extends Omit<WantedSettings, "synchronization">, SaveQuotas {
    readonly connection: ConnectionSettings;
    /**
     * For the connections that answer trainers; `connection` by default. With a user of its own that
     * may publish to inboxes only, no request can make a host write anywhere else.
     */
    readonly answerConnection?: ConnectionSettings;
    readonly job: string;
    /**
     * Whether trainers are in another account of the broker than the host. Without it requests from
     * another account are not answered, because the host cannot tell where the broker would send the
     * replies. False by default.
     */
    readonly acrossAccounts?: boolean;
    /** Unique among the hosts of the job; by default made of machine, process and a random part. */
    readonly id?: string;
    /** Worker threads; by default one less than the processors, at least one. */
    readonly workers?: number;
    /** How the trainers of the job keep step; not at all by default. */
    readonly synchronization?: SynchronizationInput;
    /** Bytes of journal that each shard retains for replays; 1 GiB by default, 64 MiB in memory. */
    readonly retainBytes?: number;
    /** Bytes of journal after which a shard is snapshotted; 256 MiB by default. */
    readonly snapshotBytes?: number;
    /** The most memory that the values of its shards may take; what the system has free by default. */
    readonly memoryLimitBytes?: number;
    /** The directory in which `save` may write; without it this host saves nothing. */
    readonly modelDirectory?: string;
    /** Where the job's leases are kept and its hosts are published; without it, leases are in JetStream KV. */
    readonly etcd?: EtcdSettings;
    readonly onEvent?: (event: HostEvent) => void;
}
/** Events of a host for its operator. */
export type HostEvent = {
    readonly type: "serving" | "released";
    readonly shard: number;
} | {
    /** `shard-failed` stands for `failed`; {@link ShardTrouble} describes the others. */
    readonly type: "shard-failed" | Exclude<ShardTrouble, "failed">;
    readonly shard: number;
    readonly error: PserverError;
} | ({
    readonly type: "shard-recovered";
} & ContinuedShard)
/**
 * A shard whose journal was in memory has lost these parameters: they, or the whole job, are to be initialized
 * again.
 */
 | ({
    readonly type: "parameters-lost";
    readonly shard: number;
} & TakenBack)
/** A shard is still being taken over, and that makes progress; repeated every few seconds. */
 | ({
    readonly type: "taking-over";
} & TakeOverProgress)
/** A shard goes on from its last snapshot, because its journal in memory is gone. */
 | ({
    readonly type: "fell-back";
} & ContinuedShard)
/** The host ends, and is still storing these shards, whose journals are in memory; repeated every few seconds. */
 | {
    readonly type: "saving";
    readonly shards: readonly number[];
}
/** The host ends without having stored all of a shard whose journal is in memory. */
 | {
    readonly type: "unsaved";
    readonly shard: number;
    readonly error: PserverError;
} | {
    readonly type: "disconnected" | "reconnected" | "etcd-back";
}
/** `etcd-lost`: etcd answers no call until `etcd-back`; errors of calls in that time are not reported. */
 | {
    readonly type: "error" | "etcd-lost";
    readonly error: PserverError;
};
/** A running host. */
export interface Host {
    readonly id: string;
    readonly settings: StoredSettings;
    /** Settles when the host has stopped: with the reason, or undefined after `close`. */
    readonly stopped: Promise<PserverError | undefined>;
    /** Stores shards whose journals are in memory, releases all and stops; no acknowledged update is lost. */
    close(): Promise<void>;
}
/** Dependencies of {@link RunningHost}. */
export interface HostOpening {
    readonly options: HostOptions;
    readonly subjects: JobSubjects;
    readonly id: string;
    readonly connection: NatsConnection;
    /** Connection on which requests of trainers arrive and are answered. */
    readonly answers: NatsConnection;
    /** Limits the refusals sent through `answers`. */
    readonly refusals: RefusalBudget;
    readonly etcd: EtcdSpace | undefined;
    readonly retries: StartRetries;
}
/**
 * Repeats the parts of a host's start that the broker cannot do for now, as in a cluster without a leader, until a
 * deadline that all parts share.
 */
export declare class StartRetries {
    #private;
    constructor(connection: Pick<NatsConnection, "info">, timeoutMs: number);
    /**
     * Returns the result of `work`, which is repeated while its error is retryable and there is time.
     * @throws its last error; NO_JETSTREAM at once if the broker has no JetStream.
     */
    run<Result>(work: () => Promise<Result>): Promise<Result>;
}
/** A host that has opened its job: starts and stops its parts, and reacts to their reports. */
export declare class RunningHost implements Host, WorkerPoolEvents {
    #private;
    readonly id: string;
    readonly settings: StoredSettings;
    readonly stopped: Promise<PserverError | undefined>;
    /** Makes the parts of the host. Nothing runs before {@link RunningHost.start}. */
    constructor(opening: HostOpening, job: OpenedJob, owners: OwnersClient);
    /** Claims shards and begins to answer requests. @throws as `startHost`. */
    start(): Promise<void>;
    /**
     * Settles when every shard that falls to this host is served or has failed.
     * @throws TIMEOUT when no take-over has made progress for `stallMs`.
     */
    untilServed(stallMs: number): Promise<void>;
    close(): Promise<void>;
    /** Stops all parts, once; `reason` becomes the result of {@link RunningHost.stopped}. */
    stop(reason: PserverError | undefined): Promise<void>;
    onServing(shard: number): void;
    /** Reports the trouble. A shard that does not fit into the memory is left to other hosts until it fits. */
    onTrouble(type: ShardTrouble, shard: number, error: PserverError): void;
    onRecovered(recovered: ContinuedShard): void;
    onFellBack(fallen: ContinuedShard): void;
    onCrash(error: PserverError): void;
}
//# sourceMappingURL=host.d.ts.map