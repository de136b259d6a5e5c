import { type Dtype, type Encoding } from "../../protocol/dtypes.ts";
import type { ErrorCode, PserverError } from "../../protocol/errors.ts";
import { type PartCounts } from "../../protocol/messages/parts.ts";
import { type NoteEntries } from "../../protocol/messages/records.ts";
import type { HostVerb, TrainerVerb } from "../../protocol/subjects.ts";
import { type FoldedRecord, type JournalRecord } from "../fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../fold/shard.ts";
import { type Statistics } from "../fold/statistics.ts";
/** What a record, or an entry of a batch, asks for; `unreadable` if it cannot be read. */
export type UpdateVerb = TrainerVerb | "clock" | "note" | "batch" | HostVerb | "unreadable";
/** The outcome of a record as events have it. */
export type UpdateOutcome = {
    readonly kind: "applied";
} | {
    readonly kind: "rejected";
    readonly code: ErrorCode;
    readonly message: string;
}
/** An earlier copy was folded before. `seq` is that record; 0 if it is not known any more. */
 | {
    readonly kind: "repeated";
    readonly seq: number;
} | {
    readonly kind: "unreadable";
};
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
    /** The sender; undefined for a host, and if the record does not name one. */
    readonly trainer?: string | undefined;
    readonly session?: number | undefined;
    /** Number of the record in its session and shard. */
    readonly n?: number | undefined;
    /** The step that a gradient or a clock names. */
    readonly step?: number | undefined;
    /** What it does to which block; undefined if it is about no block, or cannot be read. */
    readonly block?: BlockChange | undefined;
    /** The entries of a note. */
    readonly note?: NoteEntries | undefined;
    /** Bytes of the record's payload; only for a record about no block. */
    readonly bytes?: number | undefined;
    /**
     * Code and text of the error, if the record could not be described. Such a record is a single event with its place,
     * sender and outcome alone. Undefined for a record that was described.
     */
    readonly undescribed?: string | undefined;
}
/** The operation of an update of a block. */
export type BlockOperation = {
    readonly op: "init";
} | {
    readonly op: "set";
} | {
    readonly op: "mix";
    readonly alpha: number;
    readonly beta: number;
}
/** `lr` is the learning rate of the call; undefined if it uses the configuration's. */
 | {
    readonly op: "grad";
    readonly lr: number | undefined;
};
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
/** The shard that a record was folded into, as far as events need it. */
type BlockSource = Pick<Shard, "memory" | "block">;
/**
 * Describes a record that was just folded: as one event, or as one for each entry of a batch. Must be called by the
 * shard's observer, because it measures elements that lie in the record. A rejected batch whose entries cannot be
 * read is one event of the verb `batch`.
 */
export declare function describeRecord(folded: FoldedRecord, shard: BlockSource, place: Pick<UpdatePlace, "shard" | "generation">): UpdateEvent[];
/**
 * Returns the event of a record whose description has failed with `error`: its place, sender and outcome. Must be
 * called by the shard's observer.
 */
export declare function undescribed(folded: FoldedRecord, place: Pick<UpdatePlace, "shard" | "generation">, error: PserverError): UpdateEvent;
/** A record with the time that its description needs and the fold does not. */
export interface DatedRecord extends JournalRecord {
    /** When the broker stored it, in milliseconds since 1970. */
    readonly timeMs: number;
}
/** A record that was folded, and its description. */
export interface DescribedRecord {
    /** The updates of the record, in the order of its entries. */
    readonly events: readonly UpdateEvent[];
    readonly settled: RecordAnswer | undefined;
}
/**
 * Folds the next record and describes it, as far as it can be described. `place` is the shard and the generation of
 * its journal. Replaces the shard's observer during the call.
 * @throws as `Shard.apply`.
 */
export declare function foldDescribed(shard: Shard, record: DatedRecord, place: {
    readonly shard: number;
    readonly generation: number;
}): DescribedRecord;
export {};
//# sourceMappingURL=describe-record.d.ts.map