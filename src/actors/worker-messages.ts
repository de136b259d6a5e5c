import type { Fields, WireError } from "../protocol/index.ts";
import type { ConnectionSettings } from "../transport/connection.ts";
import type { JournalSettings } from "./journal/journal.ts";

/** What a worker thread is started with. */
export interface WorkerSetup {
  readonly connection: ConnectionSettings;
  /** Of the connection that answers. */
  readonly answerConnection: ConnectionSettings;
  readonly job: string;
  readonly host: string;
  readonly index: number;
  readonly shards: number;
  /** The buffer of the host's `LeaseClock`. */
  readonly leases: SharedArrayBuffer;
  readonly journal: JournalSettings;
  readonly retainBytes: number;
  readonly snapshotBytes: number;
  /** Journal bytes under way to one shard. */
  readonly creditBytes: number;
}

/** What the main thread tells a worker. */
export type ToWorker =
  | { readonly type: "own"; readonly shard: number }
  | { readonly type: "disown"; readonly shard: number }
  | { readonly type: "close" };

/** What a worker tells the main thread. */
export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "serving"; readonly shard: number }
  | { readonly type: "disowned"; readonly shard: number }
  | { readonly type: "failed"; readonly shard: number; readonly error: WireError }
  | { readonly type: "snapshot-failed"; readonly shard: number; readonly error: WireError }
  | { readonly type: "statuses"; readonly statuses: readonly Fields[] }
  | { readonly type: "closed" };
