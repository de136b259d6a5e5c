import type { Position } from "../../protocol/index.ts";

/** How a history is folded otherwise: plain data, so that it can be passed to worker threads. */
export interface FoldChanges {
  /** Their gradients, pushes and sets are left out; inits and clocks stay, because others depend on them. */
  readonly withoutTrainers: readonly string[];
  /** Records that are left out, each in one shard. */
  readonly withoutRecords: readonly (Position & { readonly shard: number })[];
  /** Replaces the learning rate of every gradient, whatever the parameter's configuration says. */
  readonly learningRate?: number | undefined;
  /** Gradients of a larger L2 norm are scaled down to it. */
  readonly clipNorm?: number | undefined;
}

/** How many records were folded otherwise than they are in the journal. */
export interface ChangeCounts {
  readonly leftOut: number;
  readonly changed: number;
}
