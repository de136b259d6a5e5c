import type { Allocate } from "../../protocol/codec.ts";
import type { RecordHead, TrainerRecord } from "../../protocol/records.ts";
import type { UpdateSize } from "../core/block-update.ts";

/** A block of a parameter. */
export interface BlockName {
  readonly parameter: string;
  readonly index: number;
}

/** What a record is about: blocks, in a clock the steps up to one, or, in a note, no part of the model. */
export type Topic =
  | { readonly kind: "blocks"; readonly blocks: readonly BlockName[] }
  | { readonly kind: "clock"; readonly step: number }
  | { readonly kind: "note" };

/** What a record is made from: where it goes, and how its message is made. */
export interface UpdateSource extends UpdateSize {
  readonly subject: string;
  readonly topic: Topic;
  /** How it becomes an entry of a batch; absent if it always goes alone. */
  readonly entry?: EntrySource | undefined;
  /**
   * The record under these numbers, in memory of `allocate`; it names the version of the block that a
   * gradient was made from only if `namesVersion`. Copies the tensor's bytes, once.
   */
  draft(head: RecordHead, namesVersion: boolean, allocate?: Allocate): Uint8Array;
}

/** An update of one block that can be written as an entry of a batch. */
export interface EntrySource extends BlockName {
  readonly namesVersion: boolean;
  /** Whether its elements are floats: in a `sync` job their gradients wait for the step to close. */
  readonly isFloat: boolean;
  /** At most as many bytes as what it says of its parameter takes in the header of a batch. */
  readonly groupBytesMax: number;
  /** Bytes of its packed index and its elements. */
  readonly entryBytes: number;
  /** Its record; all of one parameter in a call differ in block, part and `seen` only. */
  record(head: RecordHead, namesVersion: boolean): TrainerRecord;
  /** Writes {@link entryBytes} bytes: copies the tensor's, once. */
  writeEntry(target: Uint8Array): void;
}
