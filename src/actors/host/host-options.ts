import type {
  EtcdSettings,
  Fields,
  PserverError,
  SynchronizationInput,
} from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { StoredSettings } from "../job/job-settings.ts";
import type { RecoveredShard } from "./worker-messages.ts";

/** How a host is started. */
export interface HostOptions {
  readonly connection: ConnectionSettings;
  /**
   * For the connections that answer trainers, by default as `connection`. With a user of its own,
   * which may publish nothing but inboxes, no request can make a host write anywhere else.
   */
  readonly answerConnection?: ConnectionSettings;
  readonly job: string;
  /**
   * Whether trainers are in another account of the broker than the host; else their requests, whose
   * answers the broker leads to where the host cannot see, get none. By default false.
   */
  readonly acrossAccounts?: boolean;
  /** Unlike that of any other host of the job; by default made of machine, process and chance. */
  readonly id?: string;
  /** Worker threads; by default one less than the processors, at least one. */
  readonly workers?: number;
  /** For a new job; for an existing one they must agree with it or be left out. */
  readonly shards?: number;
  readonly journal?: "file" | "memory";
  readonly journalBytesMax?: number;
  readonly leaseMs?: number;
  readonly replicas?: number;
  /** Names that may be declared; 65,536 by default. */
  readonly parametersMax?: number;
  /** Bytes of values and optimizer state that may be declared; 1 TiB by default. */
  readonly heldBytesMax?: number;
  /** The same for what one trainer has declared; as for the job by default. */
  readonly trainerParametersMax?: number;
  readonly trainerHeldBytesMax?: number;
  /** How the trainers of the job keep step; by default not at all. */
  readonly synchronization?: SynchronizationInput;
  /** Journal that each shard keeps for replaying the past; 1 GiB by default, 64 MiB in memory. */
  readonly retainBytes?: number;
  /** Journal after which a shard is snapshotted; 256 MiB by default. */
  readonly snapshotBytes?: number;
  /** The most memory that the values of its shards may take; by default what the system has free. */
  readonly memoryLimitBytes?: number;
  /** Where `save` may write; without it this host saves nothing. */
  readonly modelDirectory?: string;
  /** Where the job's leases are kept and its hosts are published; without it in JetStream KV. */
  readonly etcd?: EtcdSettings;
  readonly onEvent?: (event: HostEvent) => void;
}

/** What happens in a host that an operator may want to know. */
export type HostEvent =
  | { readonly type: "serving" | "released"; readonly shard: number }
  | {
      /**
       * `mark-failed`: how far the shard is folded cannot be noted outside its journal.
       * `loss-reported`: an asker has seen a later record than the journal holds; the shard goes on.
       */
      readonly type:
        | "shard-failed"
        | "snapshot-failed"
        | "mark-failed"
        | "loss-reported"
        | "no-memory";
      readonly shard: number;
      readonly error: PserverError;
    }
  | ({ readonly type: "shard-recovered" } & RecoveredShard)
  | { readonly type: "disconnected" | "reconnected" | "etcd-back" }
  /** `etcd-lost`: no call is answered until `etcd-back`; what failed meanwhile is not told. */
  | { readonly type: "error" | "etcd-lost"; readonly error: PserverError };

/** A host as it stands. */
export interface HostStatus {
  readonly id: string;
  readonly shards: readonly Fields[];
}

/** A running host. */
export interface Host {
  readonly id: string;
  readonly settings: StoredSettings;
  status(): HostStatus;
  /** Settles when the host has stopped: with the reason, or undefined after `close`. */
  readonly stopped: Promise<PserverError | undefined>;
  /** Hands the shards over and stops; nothing acknowledged is lost. */
  close(): Promise<void>;
}
