import type { Fields, WireError } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { JournalSettings } from "../journal/journal.ts";
import type { AcceptedLoss } from "../recovery/accept-loss.ts";

/** What a worker thread is started with. */
export interface WorkerSetup {
  readonly connection: ConnectionSettings;
  /** Settings of the connection that answers. */
  readonly answerConnection: ConnectionSettings;
  readonly job: string;
  /** Whether requests may come from another account of the broker. */
  readonly acrossAccounts: boolean;
  readonly host: string;
  readonly index: number;
  readonly shards: number;
  readonly leaseMs: number;
  /** The buffer of the host's `LeaseClock`. */
  readonly leases: SharedArrayBuffer;
  readonly journal: JournalSettings;
  /** Whether the job has a tape. */
  readonly tape: boolean;
  readonly retainBytes: number;
  readonly snapshotBytes: number;
  /** Journal bytes that may be under way to one shard. */
  readonly creditBytes: number;
  /** The buffer of the host's `HostMemory`, and the most that the host may use for values. */
  readonly memory: SharedArrayBuffer;
  readonly memoryLimitBytes: number | undefined;
}

/** Messages from the main thread to a worker. */
export type ToWorker =
  | { readonly type: "own"; readonly shard: number }
  | { readonly type: "disown"; readonly shard: number }
  /** Store all of a shard whose journal may go with the broker; its lease is held until that is done. */
  | { readonly type: "save"; readonly shard: number }
  | { readonly type: "close" };

/**
 * Troubles of a shard: it has failed; it does not fit into the host's memory; a snapshot, lines of
 * the tape or the mark of how far it is folded could not be stored; records could not be described, or have no
 * lines on the tape; a trainer has seen a later record than the journal holds.
 */
export type ShardEventType =
  | "failed"
  | "no-memory"
  | "snapshot-failed"
  | "tape-failed"
  | "tape-incomplete"
  | "mark-failed"
  | "loss-reported";

/** Messages from a worker to the main thread. */
export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "serving"; readonly shard: number }
  | { readonly type: ShardEventType; readonly shard: number; readonly error: WireError }
  /** The work on a `save` has progressed; or it has ended, with an error unless the shard is stored. */
  | { readonly type: "saving"; readonly shard: number }
  | { readonly type: "saved"; readonly shard: number; readonly error?: WireError }
  | ({ readonly type: "recovered" | "fell-back" } & AcceptedLoss)
  | { readonly type: "statuses"; readonly statuses: readonly Fields[] };
