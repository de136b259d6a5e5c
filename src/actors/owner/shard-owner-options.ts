import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { JobSubjects, PserverError } from "../../protocol/index.ts";
import type { Credit } from "../journal/credit.ts";
import type { Journal } from "../journal/journal.ts";
import type { HostMemory } from "../memory/host-memory.ts";
import type { Manifest } from "../snapshot/manifest.ts";
import type { SnapshotBudget } from "../snapshot/snapshot-budget.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import type { FailedBlocks } from "./failed-blocks.ts";
import type { Intake } from "./intake.ts";
import type { MarkKeeper } from "./mark-keeper.ts";
import type { Pace } from "./pace.ts";
import type { Responder } from "./responder.ts";

/** What one shard's owner needs; connections belong to the worker. */
export interface ShardOwnerOptions {
  readonly shard: number;
  readonly host: string;
  readonly subjects: JobSubjects;
  readonly journal: Journal;
  readonly journalStorage: "file" | "memory";
  readonly store: SnapshotStore;
  readonly marks: MarkKeeper;
  readonly journalConnection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly dataConnection: NatsConnection;
  /** Shared by the shards of the worker, as is the responder. */
  readonly intake: Intake;
  readonly responder: Responder;
  /** Of all shards of the worker: answers pulls of blocks that a failed shard does not know. */
  readonly failedBlocks: FailedBlocks;
  readonly credit: Credit;
  /** Of all shards of the worker. */
  readonly pace: Pace;
  /** Bytes of journal after which a snapshot is made. */
  readonly snapshotBytes: number;
  readonly retainBytes: number;
  readonly partBytesMax: number;
  /** Shared by the shards of the worker. */
  readonly snapshotBudget: SnapshotBudget;
  /** How often a shard that has failed is looked at. */
  readonly leaseMs: number;
  /** Whether the lease has not run out on this host's own clock. */
  readonly mayAnswer: () => boolean;
  /** Of the host, for all its shards. */
  readonly memory: HostMemory;
  readonly onServing: () => void;
  /** The shard does not fit into the host's memory; its owner tries again, and serves nothing. */
  readonly onNoMemory: (error: PserverError) => void;
  /** A snapshot could not be made; the shard goes on and tries again later. */
  readonly onSnapshotFailed: (error: PserverError) => void;
  /** How far the shard is folded could not be noted; told once until it can be again. */
  readonly onMarkFailed: (error: PserverError) => void;
  /** A trainer has named a later record than the journal holds; told once a minute at most. */
  readonly onLossReported: (error: PserverError) => void;
  readonly onFailure: (error: PserverError) => void;
  /** The shard, which had failed, was taken over by somebody else since: it can be taken over again. */
  readonly onRecovered: (manifest: Manifest) => void;
}

/** Where an owner stands. */
export type OwnerState =
  | "taking-over"
  | "no-memory"
  | "catching-up"
  | "serving"
  | "failed"
  | "closed";
