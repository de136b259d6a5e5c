import type { NatsConnection } from "@nats-io/transport-node";
import type { JobSubjects, PserverError, SynchronizationInput } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { Publication } from "../job/etcd-publication.ts";
import type { EtcdSettings, EtcdSpace } from "../job/etcd-space.ts";
import type { StoredSettings, WantedSettings } from "../job/job-settings.ts";
import type { LeaseClock, LeaseKeeper } from "../job/leases.ts";
import type { OpenedJob } from "../job/open-job.ts";
import type { TakenBack } from "../lifecycle/initialization.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { Refusals } from "../owner/fair-server.ts";
import type { AcceptedLoss } from "../recovery/accept-loss.ts";
import type { ControlService } from "./control-service.ts";
import type { StartRetries } from "./host.ts";
import type { HostMemory } from "./host-memory.ts";
import type { ShardClaims } from "./shard-claims.ts";
import type { JobWatch, LossesWatch, MembersWatch, SessionsWatch } from "./watches.ts";
import type { ShardEventType, WorkerPool } from "./worker-pool.ts";

/** Options of `startHost`; settings are for a new job, and must agree with those of an existing one. */
export interface HostOptions extends Omit<WantedSettings, "synchronization"> {
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
export type HostEvent =
  | { readonly type: "serving" | "released"; readonly shard: number }
  | {
      /** `shard-failed` for `failed`; the others as {@link ShardEventType} says. */
      readonly type: "shard-failed" | Exclude<ShardEventType, "failed">;
      readonly shard: number;
      readonly error: PserverError;
    }
  | ({ readonly type: "shard-recovered" } & AcceptedLoss)
  /**
   * A shard has lost these parameters, whose journal was in memory: they, or the whole job, are to be initialized
   * anew.
   */
  | ({ readonly type: "parameters-lost"; readonly shard: number } & TakenBack)
  /** A shard goes on from its last snapshot, because its journal in memory is gone. */
  | ({ readonly type: "fell-back" } & AcceptedLoss)
  /** The host ends, and still stores these shards, whose journals are in memory; told every few seconds. */
  | { readonly type: "saving"; readonly shards: readonly number[] }
  /** The host ends without having stored all of a shard whose journal is in memory. */
  | { readonly type: "unsaved"; readonly shard: number; readonly error: PserverError }
  | { readonly type: "disconnected" | "reconnected" | "etcd-back" }
  /** `etcd-lost`: etcd answers no call until `etcd-back`; calls that fail meanwhile are not reported. */
  | { readonly type: "error" | "etcd-lost"; readonly error: PserverError };

/** A running host. */
export interface Host {
  readonly id: string;
  readonly settings: StoredSettings;
  /** Settles when the host has stopped: with the reason, or undefined after `close`. */
  readonly stopped: Promise<PserverError | undefined>;
  /** Stores shards whose journals are in memory, releases all and stops; no acknowledged update is lost. */
  close(): Promise<void>;
}

/** What a host is opened with. */
export interface HostOpening {
  readonly options: HostOptions;
  readonly subjects: JobSubjects;
  readonly id: string;
  readonly connection: NatsConnection;
  /** Where requests of trainers arrive and are answered. */
  readonly answers: NatsConnection;
  /** Refusals sent through `answers`. */
  readonly refusals: Refusals;
  readonly etcd: EtcdSpace | undefined;
  readonly retries: StartRetries;
}

/** Parts of a host that has opened its job. */
export interface HostParts {
  readonly opening: HostOpening;
  readonly job: OpenedJob;
  readonly emit: (event: HostEvent) => void;
  readonly clock: LeaseClock;
  readonly memory: HostMemory;
  readonly pool: WorkerPool;
  readonly claims: ShardClaims;
  /** Of the host's own lease. */
  readonly keeper: LeaseKeeper;
  readonly lifecycle: LifecycleService;
  readonly control: ControlService;
  /** In etcd, if the job's leases are there. */
  readonly publication: Publication | undefined;
  readonly members: MembersWatch;
  readonly presence: JobWatch;
  /** Works only for a job with journals in memory. */
  readonly losses: LossesWatch;
  readonly sessions: SessionsWatch;
}
