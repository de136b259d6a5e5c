import type { BlockHeader } from "../../actors/fold/block.ts";
import type { Position, WireError } from "../../protocol/index.ts";
import type { HistoryPlace } from "../open-history.ts";
import type { ShardVerification } from "../verify/verify-shard.ts";
import type { ChangeCounts } from "../what-if/fold-changes.ts";
import type { Otherwise } from "./replayer.ts";

/** What a replay thread is started with. */
export interface ThreadSetup {
  readonly place: HistoryPlace;
}

/** A shard that a thread has rebuilt: known by the `id` of the request for it. */
export interface KeptShard {
  readonly position: Position;
  readonly blocks: readonly BlockHeader[];
}

/** Work for a replay thread; `replay` is the id of an earlier request. */
export type ThreadTask =
  | { readonly kind: "replay"; readonly shard: number; readonly to: Position }
  | { readonly kind: "verify"; readonly shard: number; readonly from: Position | undefined }
  | {
      readonly kind: "otherwise";
      readonly shard: number;
      readonly to: Position;
      readonly otherwise: Otherwise;
    }
  | { readonly kind: "advance"; readonly replay: number; readonly to: Position }
  | { readonly kind: "digest" | "state-digest" | "free"; readonly replay: number }
  | {
      readonly kind: "block-digest";
      readonly replay: number;
      readonly parameter: string;
      readonly index: number;
    }
  | {
      readonly kind: "slot";
      readonly replay: number;
      readonly parameter: string;
      readonly index: number;
      readonly slot: number;
    };

/** A message to a replay thread. */
export interface ToThread {
  readonly id: number;
  readonly task: ThreadTask;
}

/** What a task of each kind results in. */
export interface TaskResults {
  readonly replay: KeptShard;
  readonly verify: {
    readonly verification: ShardVerification;
    readonly kept: KeptShard | undefined;
  };
  readonly otherwise: { readonly kept: KeptShard; readonly counts: ChangeCounts };
  readonly advance: KeptShard;
  readonly free: undefined;
  readonly digest: string;
  readonly "state-digest": string;
  readonly "block-digest": string | undefined;
  readonly slot: Uint8Array<ArrayBuffer>;
}

/** A message of a replay thread; `id` is that of the request. */
export type FromThread =
  | { readonly kind: "ready" }
  | {
      readonly kind: "progress";
      readonly id: number;
      readonly doneRecords: number;
      readonly totalRecords: number;
    }
  | { readonly kind: "done"; readonly id: number; readonly result: TaskResults[keyof TaskResults] }
  | { readonly kind: "failed"; readonly id: number; readonly error: WireError };
