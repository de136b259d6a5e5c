import type { BlockHeader } from "../../actors/fold/block.ts";
import type { Position, WireError } from "../../protocol/index.ts";
import type { HistoryPlace } from "../open-history.ts";

/** What a replay thread is started with. */
export interface ThreadSetup {
  readonly place: HistoryPlace;
}

/** Work for a replay thread; a shard that it has rebuilt is known by the `id` of the request. */
export type ThreadTask =
  | { readonly kind: "replay"; readonly shard: number; readonly to: Position }
  | { readonly kind: "digest"; readonly replay: number }
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
  readonly replay: readonly BlockHeader[];
  readonly digest: string;
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
