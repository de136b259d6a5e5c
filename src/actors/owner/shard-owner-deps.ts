import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { JobSubjects, PserverError } from "../../protocol/index.ts";
import type { ArchiverWatch } from "../archivers/archiver-watch.ts";
import type { Credit } from "../journal/credit.ts";
import type { Journal } from "../journal/journal.ts";
import type { HostMemory } from "../memory/host-memory.ts";
import type { Manifest } from "../snapshot/manifest.ts";
import type { SnapshotBudget } from "../snapshot/snapshot-budget.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import type { TapeStore } from "../tape/tape-store.ts";
import type { FailedBlocks } from "./failed-blocks.ts";
import type { Intake } from "./intake.ts";
import type { MarkKeeper } from "./mark-keeper.ts";
import type { Pace } from "./pace.ts";
import type { Responder } from "./responder.ts";

/** Dependencies of the owner of one shard. Connections belong to the worker. */
export interface ShardOwnerDeps {
  readonly shard: number;
  readonly host: string;
  readonly subjects: JobSubjects;
  readonly journal: Journal;
  readonly journalStorage: "file" | "memory";
  readonly store: SnapshotStore;
  readonly marks: MarkKeeper;
  /** Undefined for a job without a tape. */
  readonly tape: TapeStore | undefined;
  readonly journalConnection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly dataConnection: NatsConnection;
  /** Shared by the shards of the worker, as are the responder, `failedBlocks` and `pace`. */
  readonly intake: Intake;
  readonly responder: Responder;
  readonly failedBlocks: FailedBlocks;
  readonly credit: Credit;
  readonly pace: Pace;
  /** Bytes of the journal between two snapshots. */
  readonly snapshotBytes: number;
  readonly retainBytes: number;
  /** Shared by the shards of the worker. */
  readonly archivers: Pick<ArchiverWatch, "copied">;
  readonly partBytesMax: number;
  /** Shared by the shards of the worker. */
  readonly snapshotBudget: SnapshotBudget;
  /** Interval of looks for the recovery of a failed shard. */
  readonly leaseMs: number;
  /**
   * Number of the present tenure of the shard's lease; undefined once the lease has run out on this host's
   * clock. Another host may have owned the shard between two tenures.
   */
  readonly tenure: () => bigint | undefined;
  /** Memory of the host, for all its shards. */
  readonly memory: HostMemory;
  readonly onServing: () => void;
  /** Called when the shard does not fit into the host's memory; the owner retries, and serves nothing. */
  readonly onNoMemory: (error: PserverError) => void;
  /** Called when a snapshot has failed; it is retried while the shard goes on. */
  readonly onSnapshotFailed: (error: PserverError) => void;
  /** Called for the first failure to write the tape after a success; it is retried. */
  readonly onTapeFailed: (error: PserverError) => void;
  /** Called for the first record that could not be described, and for the first lines that were left out. */
  readonly onTapeIncomplete: (error: PserverError) => void;
  /** Called for the first failure to write a mark after a success. */
  readonly onMarkFailed: (error: PserverError) => void;
  /** Called when a trainer has seen a later record than the journal holds; once a minute at most. */
  readonly onLossReported: (error: PserverError) => void;
  /** Called when the journal in memory is gone, and with it records that former owners have noted as folded. */
  readonly onFellBack: (manifest: Pick<Manifest, "generation" | "fallbacks">) => void;
  readonly onFailure: (error: PserverError) => void;
  /** Called when somebody else has recovered the failed shard: it can be taken over again. */
  readonly onRecovered: (manifest: Manifest) => void;
}

/** State of an owner. */
export type OwnerState =
  | "taking-over"
  | "no-memory"
  | "catching-up"
  | "serving"
  | "failed"
  | "closed";
