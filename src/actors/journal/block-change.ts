import type { Dtype, Encoding } from "../../protocol/dtypes.ts";
import type { PartCounts } from "../../protocol/messages/parts.ts";
import type { Statistics } from "../fold/statistics.ts";

/** The operation of an update of a block. */
export type BlockOperation =
  | { readonly op: "init" }
  | { readonly op: "set" }
  | { readonly op: "mix"; readonly alpha: number; readonly beta: number }
  /** `lr` is the learning rate of the call; undefined if it uses the configuration's. */
  | { readonly op: "grad"; readonly lr: number | undefined };

/** The part of an update that is about its block. */
export interface BlockChange {
  readonly parameter: string;
  readonly index: number;
  readonly operation: BlockOperation;
  readonly dtype: Dtype;
  readonly encoding: Encoding | undefined;
  /** Set if the update has only some elements of the block. */
  readonly part: PartCounts | undefined;
  /** Number of elements in the update. */
  readonly elements: number;
  /** Bytes of these elements as they were sent. */
  readonly bytes: number;
  /** Statistics of the elements; undefined if the record does not show where they are. */
  readonly statistics: Statistics | undefined;
  /**
   * Version of the block after the record, before a step that it closes is applied; undefined if there is
   * no such block.
   */
  readonly version: number | undefined;
  /**
   * How many versions the block was ahead of the values from which a gradient was computed; undefined if the gradient
   * does not name their version.
   */
  readonly behind: number | undefined;
}
