import type { Allocate } from "../../protocol/codec.ts";
import type { RecordHead } from "../../protocol/records.ts";
import type { UpdateSize } from "../core/block-update.ts";

/** What a record is about: a block, or, in a clock, the steps up to one. */
export type Topic =
  | { readonly kind: "block"; readonly parameter: string; readonly index: number }
  | { readonly kind: "clock"; readonly step: number };

/** What a block update, or a clock, is made from: where it goes, and how its message is made. */
export interface UpdateSource extends UpdateSize {
  readonly subject: string;
  readonly topic: Topic;
  /**
   * The record under these numbers, in memory of `allocate`; it names the version of the block that a
   * gradient was made from only if `namesVersion`. Copies the tensor's bytes, once.
   */
  draft(head: RecordHead, namesVersion: boolean, allocate?: Allocate): Uint8Array;
}
