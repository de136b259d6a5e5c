import type { WireError } from "../../protocol/index.ts";

/** Sequences of a journal that follow each other. */
export interface SeqRange {
  readonly from: number;
  readonly to: number;
}

/** Records that a journal does not give although it has had their sequences. */
export interface Gap extends SeqRange {
  /**
   * `empty`: the stream says itself that it holds none of them, as after a crash that cut its file or
   * a full disk. `unreadable`: it counts them and cannot give them.
   */
  readonly kind: "empty" | "unreadable";
}

/** A block that a state does not hold, although its parameter is initialized. */
export interface LackedBlock {
  readonly parameter: string;
  readonly index: number;
}

/** A snapshot that a manifest names. */
export interface FoundSnapshot {
  /** Sequence of the manifest in the stream of snapshots. */
  readonly manifestSeq: number;
  readonly generation: number;
  /** The last record that it holds. */
  readonly seq: number;
  /** Checksum of that record, 0 if there is none that could be told from another. */
  readonly recordCrc: number;
  readonly host: string;
  /** What is wrong with it; absent if every piece of it can be read. */
  readonly problem?: string;
  /** Blocks of initialized parameters that it does not hold: the shard cannot go on from it alone. */
  readonly lacks: readonly LackedBlock[];
}

/** The journal of the newest generation. */
export interface FoundJournal {
  readonly stream: string;
  readonly firstSeq: number;
  /** The last record that it holds. */
  readonly lastSeq: number;
  readonly bytes: number;
  readonly gaps: readonly Gap[];
  /** Why no record of it can be folded on any snapshot; absent if some can. */
  readonly problem?: string;
}

/** Whose records are meant, as far as the journal still tells. */
export interface Tally {
  /** Records by trainer, most first. */
  readonly trainers: readonly { readonly trainer: string; readonly records: number }[];
  readonly hostRecords: number;
}

/** The records that a choice gives up: all from `from` to `to`, none if `to` is below. */
export interface Lost extends SeqRange, Tally {
  readonly generation: number;
  readonly records: number;
  /** Those of which the journal does not tell any more whose they were. */
  readonly unknown: number;
}

/**
 * A state that a shard can go on from. Whatever comes to be offered later, such as an archive, is one
 * more value of `from`.
 */
export type RecoveryChoice = SnapshotChoice | PrefixChoice;

/** Goes on from a snapshot as it is. */
export interface SnapshotChoice {
  readonly from: "snapshot";
  readonly manifestSeq: number;
  readonly generation: number;
  readonly seq: number;
  readonly lost: Lost;
}

/** Goes on from the readable prefix of the journal. */
export interface PrefixChoice {
  readonly from: "prefix";
  /** The manifest of the snapshot that it is folded on; absent for a journal that begins at record 1. */
  readonly manifestSeq?: number;
  readonly generation: number;
  /** The last record that is folded. */
  readonly seq: number;
  readonly lost: Lost;
}

/** Where a shard stands that is looked at. */
export type ShardCondition =
  /** Its owner serves it. */
  | "serving"
  /** Nobody owns it, and whoever takes it over will find all it needs. */
  | "whole"
  /** It has stopped, or will as soon as it is taken over, because something is lost. */
  | "stopped"
  /** Its owner has failed for another reason than a loss. */
  | "failed";

/** All that is known of one shard. Nothing is changed to find it out. */
export interface ShardFindings {
  readonly shard: number;
  readonly condition: ShardCondition;
  /** What its owner has failed for, or what a new owner would find; absent if it is whole. */
  readonly error?: WireError;
  /** The newest generation there is; 0 for a shard that never was. */
  readonly generation: number;
  /** Sequence of the newest manifest, 0 if there is none. */
  readonly manifestSeq: number;
  /** Newest first. */
  readonly snapshots: readonly FoundSnapshot[];
  readonly journal?: FoundJournal;
  /** The last record of the newest generation known to have existed. */
  readonly lastKnownSeq: number;
  /** Those that lose least first; empty if nothing can be saved. */
  readonly choices: readonly RecoveryChoice[];
}
