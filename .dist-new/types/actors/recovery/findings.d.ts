import type { Position, WireError } from "../../protocol/index.ts";
/** Consecutive sequences of a journal. */
export interface SeqRange {
    readonly from: number;
    readonly to: number;
}
/** Sequences of a journal that were given to records but deliver none. */
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
    readonly number: number;
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
    /** Blocks of initialized parameters that it lacks. If there are any, the shard cannot go on from it alone. */
    readonly lacks: readonly LackedBlock[];
}
/** The state of a shard that an archive gives, together with what the broker still holds. */
export interface FoundArchive extends Position {
    /** Path of the archive. */
    readonly name: string;
    /** Last record of the generation in the archive itself. */
    readonly archivedSeq: number;
    /**
     * First record in whose place the broker's journal holds another one; if there is one, the archive is read alone.
     */
    readonly replacedFrom?: number;
    /** Why it cannot be used; absent if the state at its position can be rebuilt. */
    readonly problem?: string;
    /** Blocks of initialized parameters that the state lacks. */
    readonly lacks: readonly LackedBlock[];
}
/** A record that cannot be folded. */
export interface FailedRecord {
    readonly seq: number;
    /** Its trainer; undefined for a host's record, and for one that names no sender. */
    readonly trainer?: string | undefined;
}
/** The rest of a journal without the records that cannot be folded. */
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
    /** Range of records in which at least one is not the one that was folded; absent if none is known. */
    readonly changed?: SeqRange;
    /** Why none of its records can be folded; absent if some can. */
    readonly problem?: string;
}
/** Counts of records by sender, as far as the journal holds them. */
export interface Tally {
    /** Records by trainer, the highest count first. */
    readonly trainers: readonly {
        readonly trainer: string;
        readonly records: number;
    }[];
    readonly hostRecords: number;
}
/**
 * Records that a choice loses: all from `from` to `to`, or of a `rest` only those put aside and those after it; none
 * if `to` is below `from`.
 */
interface Lost extends SeqRange, Tally {
    readonly generation: number;
    readonly records: number;
    /** Lost records whose senders are unknown. */
    readonly unknown: number;
}
/**
 * A state that a shard can go on from: a snapshot as it is, or with the readable prefix of the journal, or with all
 * of the journal but records that cannot be folded (`rest`); or the newest state that an archive gives.
 */
export interface RecoveryChoice {
    readonly from: "snapshot" | "prefix" | "rest" | "archive";
    /** Manifest of the snapshot; absent for a prefix that begins at record 1, and for an archive. */
    readonly manifestSeq?: number;
    readonly generation: number;
    /** Last record of the state. */
    readonly seq: number;
    /** Records of a `rest` that are put aside. */
    readonly without?: readonly number[];
    readonly lost: Lost;
}
/** Condition of an inspected shard. */
export type ShardCondition = 
/** Its owner serves it. */
"serving"
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
    /** Error of its owner, or the one that would stop a new owner; absent if the shard is whole. */
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
/** Findings that determine the choices of a shard. */
export interface ChoiceFacts {
    readonly generation: number;
    /** Newest first. */
    readonly snapshots: readonly FoundSnapshot[];
    readonly journal: FoundJournal | undefined;
    /** Undefined without an archive. */
    readonly archive: FoundArchive | undefined;
    /** Undefined unless a record cannot be folded. */
    readonly rest: FoundRest | undefined;
    /** Last record up to which the journal can be folded from the newest readable snapshot. */
    readonly prefixEnd: number;
    /** Blocks of initialized parameters missing in that state. */
    readonly prefixLacks: readonly LackedBlock[];
    readonly lastKnownSeq: number;
    /** First record known to be lost, also if the journal holds another one in its place. */
    readonly lostFrom: number | undefined;
    /** Counts the records that the journal holds after a sequence. */
    readonly behind: (afterSeq: number) => Tally;
}
/** Returns the newest snapshot that can be read as a whole; the journal is folded from it. */
export declare function newestWhole(snapshots: readonly FoundSnapshot[]): FoundSnapshot | undefined;
/**
 * Returns the states that a shard can go on from, the smallest loss first: the rest of the journal without records
 * that cannot be folded, the readable prefix if it extends the newest whole snapshot, then the whole snapshots, and
 * among them the state of the archive. States without blocks of initialized parameters are excluded: nobody could
 * read or initialize these blocks any more.
 */
export declare function choicesOf(facts: ChoiceFacts): RecoveryChoice[];
export {};
//# sourceMappingURL=findings.d.ts.map