import type { Dtype } from "../../protocol/dtypes.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import type { NoteEntries } from "../../protocol/notes.ts";
import type { PartCounts } from "../../protocol/parts.ts";
import type { HostVerb, TrainerVerb } from "../../protocol/verbs.ts";
import type { Statistics } from "../fold/statistics.ts";

/** What a record, or an entry of a batch, is meant to do; `unreadable` for one that cannot be read. */
export type UpdateVerb = TrainerVerb | "clock" | "note" | "batch" | HostVerb | "unreadable";

/** What became of a record. */
export type UpdateOutcome =
  | { readonly kind: "applied" }
  | { readonly kind: "rejected"; readonly code: ErrorCode; readonly message: string }
  /** An earlier copy was folded before; `seq` is its record, 0 if that is not known any more. */
  | { readonly kind: "repeated"; readonly seq: number }
  | { readonly kind: "unreadable" };

/** Where an update stands in a job's history. */
export interface UpdatePlace {
  /** When the broker stored the record, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly shard: number;
  readonly generation: number;
  readonly seq: number;
}

/** One update as it was folded: a record, or an entry of a batch. Holds no tensor. */
export interface UpdateEvent extends UpdatePlace {
  /** Number of the entry in its record, from 0. */
  readonly entry: number;
  /** Entries of the record: 1 unless it is a batch. */
  readonly entries: number;
  readonly verb: UpdateVerb;
  readonly outcome: UpdateOutcome;
  /** The sender; undefined for a host, and for a record that does not tell. */
  readonly trainer?: string | undefined;
  readonly session?: number | undefined;
  /** Number of the record in its session and shard. */
  readonly n?: number | undefined;
  /** The step that a gradient or a clock names. */
  readonly step?: number | undefined;
  /** What it does to which block; undefined for what is about none, or cannot be read. */
  readonly block?: BlockChange | undefined;
  /** The entries of a note. */
  readonly note?: NoteEntries | undefined;
  /** Bytes of the record's payload, for one that is about no block. */
  readonly bytes?: number | undefined;
  /**
   * Code and text of the error because of which the record could not be described: then it is one event, of
   * its place, sender and outcome alone. Undefined for one that was described.
   */
  readonly undescribed?: string | undefined;
}

/** The operation of an update of a block. */
export type BlockOperation =
  | { readonly op: "init" }
  | { readonly op: "set" }
  | { readonly op: "mix"; readonly alpha: number; readonly beta: number }
  /** `lr`: the learning rate of the call; undefined for that of the configuration. */
  | { readonly op: "grad"; readonly lr: number | undefined };

/** The part of an update that is about its block. */
export interface BlockChange {
  readonly parameter: string;
  readonly index: number;
  readonly operation: BlockOperation;
  readonly dtype: Dtype;
  readonly encoding: Encoding | undefined;
  /** Set if it has only some elements of the block. */
  readonly part: PartCounts | undefined;
  /** Elements that it carries. */
  readonly elements: number;
  /** Bytes of these elements as they were sent. */
  readonly bytes: number;
  /** Undefined if the elements could not be told from the rest of the record. */
  readonly statistics: Statistics | undefined;
  /**
   * Version of the block after the record, before a step that it closes is applied; undefined if there is
   * no such block.
   */
  readonly version: number | undefined;
  /**
   * How many versions the block had gone on since the values that a gradient was made from; undefined if
   * the gradient does not say.
   */
  readonly behind: number | undefined;
}
