import type { Position, WireError } from "../../protocol/index.ts";

/** Consecutive sequences of a journal. */
export interface SeqRange {
  readonly from: number;
  readonly to: number;
}

/** Sequences that a journal has given out and delivers no records for. */
export interface Gap extends SeqRange {
  /**
   * `empty`: the stream reports that it holds none of them, as after a crash that cut off its file or
   * after a full disk. `unreadable`: it counts them but cannot deliver them.
   */
  readonly kind: "empty" | "unreadable";
}

/** A block of an initialized parameter that a state lacks. */
export interface LackedBlock {
  readonly parameter: string;
  readonly index: number;
}

/** A snapshot that a manifest names. */
export interface FoundSnapshot {
  /** Sequence of the manifest in the stream of snapshots. */
  readonly manifestSeq: number;
  readonly generation: number;
  /** Last record in it. */
  readonly seq: number;
  /** Checksum of that record; 0 if it has none to recognize it by. */
  readonly recordCrc: number;
  readonly host: string;
  /** Why it cannot be used; absent if all of it can be read. */
  readonly problem?: string;
  /** Blocks of initialized parameters that it lacks: if any, the shard cannot go on from it alone. */
  readonly lacks: readonly LackedBlock[];
}

/** What an archive gives of a shard, together with what the broker still holds. */
export interface FoundArchive extends Position {
  /** Path of the archive. */
  readonly name: string;
  /** Last record of the generation in the archive itself. */
  readonly archivedSeq: number;
  /** First record in whose place the broker's journal holds another one, if any: it is read alone then. */
  readonly replacedFrom?: number;
  /** Why it cannot be used; absent if the state at its position can be rebuilt. */
  readonly problem?: string;
  /** Blocks of initialized parameters that the state lacks. */
  readonly lacks: readonly LackedBlock[];
}

/** A record that a fold has not passed. */
export interface FailedRecord {
  readonly seq: number;
  /** Undefined for a host's, and for one that names no sender. */
  readonly trainer?: string | undefined;
}

/** What is left of a journal without the records that cannot be folded. */
export interface FoundRest {
  /** Last record of the state. */
  readonly seq: number;
  /** The records that are put aside, ascending. */
  readonly without: readonly FailedRecord[];
  /** Why the state cannot be used; absent if it can. */
  readonly problem?: string;
  /** Blocks of initialized parameters that the state lacks. */
  readonly lacks: readonly LackedBlock[];
}

/** The journal of the newest generation. */
export interface FoundJournal {
  readonly stream: string;
  readonly firstSeq: number;
  /** Last record in it. */
  readonly lastSeq: number;
  readonly bytes: number;
  readonly gaps: readonly Gap[];
  /** Records of which at least one is another than the one that was folded; absent if none is known. */
  readonly changed?: SeqRange;
  /** Why none of its records can be folded; absent if some can. */
  readonly problem?: string;
}

/** Counts of records by sender, as far as the journal holds them. */
export interface Tally {
  /** Records by trainer, the highest count first. */
  readonly trainers: readonly { readonly trainer: string; readonly records: number }[];
  readonly hostRecords: number;
}

/**
 * Records that a choice loses: all from `from` to `to`, of a `rest` only those put aside and those behind it;
 * none if `to` is below `from`.
 */
export interface Lost extends SeqRange, Tally {
  readonly generation: number;
  readonly records: number;
  /** Lost records whose senders are unknown. */
  readonly unknown: number;
}

/**
 * A state that a shard can go on from: a snapshot as it is, or with the readable prefix of the journal, or with
 * all of it but records that cannot be folded (`rest`); or the newest one that an archive gives.
 */
export interface RecoveryChoice {
  readonly from: "snapshot" | "prefix" | "rest" | "archive";
  /** Manifest of the snapshot; absent for a prefix that begins at record 1, and for an archive. */
  readonly manifestSeq?: number;
  readonly generation: number;
  /** Last record of the state. */
  readonly seq: number;
  /** Of a `rest`: the records that are put aside. */
  readonly without?: readonly number[];
  readonly lost: Lost;
}

/** Condition of an inspected shard. */
export type ShardCondition =
  /** Its owner serves it. */
  | "serving"
  /** It has no owner, and could be taken over without a loss. */
  | "whole"
  /** It has stopped, or would stop when taken over, because of a loss. */
  | "stopped"
  /** Its owner has failed for another reason than a loss. */
  | "failed";

/** Result of the inspection of one shard. */
export interface ShardFindings {
  readonly shard: number;
  readonly condition: ShardCondition;
  /** Error of its owner, or the one that a new owner would stop with; absent if it is whole. */
  readonly error?: WireError;
  /** Newest generation; 0 for a shard that was never created. */
  readonly generation: number;
  /** Sequence of the newest manifest, 0 if there is none. */
  readonly manifestSeq: number;
  /** Newest first. */
  readonly snapshots: readonly FoundSnapshot[];
  readonly journal?: FoundJournal;
  /** Absent unless an archive was named. */
  readonly archive?: FoundArchive;
  /** Present if a record cannot be folded. */
  readonly rest?: FoundRest;
  /** Last record of the newest generation that is known to have existed. */
  readonly lastKnownSeq: number;
  /** The smallest loss first; empty if nothing can be saved. */
  readonly choices: readonly RecoveryChoice[];
}
