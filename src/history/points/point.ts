import type { Position } from "../../protocol/index.ts";

/** A moment of a job's history as somebody names it. */
export type Point =
  | { readonly kind: "now" }
  | { readonly kind: "start" }
  | { readonly kind: "time"; readonly timeMs: number }
  | {
      readonly kind: "position";
      readonly shard: number;
      readonly seq: number;
      /** Undefined for the newest one. */
      readonly generation: number | undefined;
    }
  | { readonly kind: "step"; readonly step: number }
  | {
      readonly kind: "update";
      readonly trainer: string;
      readonly session: number;
      /** Its number in its shard. */
      readonly n: number;
      /** Undefined if the number is of one shard only. */
      readonly shard: number | undefined;
    }
  | { readonly kind: "mark"; readonly name: string };

/** A position in every shard of a job, by the shard's number. */
export type Cut = readonly Position[];

/** A point with the cut that it means. */
export interface ResolvedPoint {
  readonly point: Point;
  readonly cut: Cut;
  /** The time of the cut, in milliseconds since 1970, where one time makes it. */
  readonly timeMs: number | undefined;
}
