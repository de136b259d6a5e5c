import { type Allocate, type DraftMessage, type Fields, type Message } from "../codec.ts";
import { type ParameterConfig } from "../config/index.ts";
import { type Dtype, type Encoding } from "../dtypes.ts";
import type { TrainerVerb } from "../subjects.ts";
import { type PartCounts } from "./parts.ts";
/**
 * The header of every record of a trainer. `n` counts 1, 2, 3, … per session and shard; `done` promises that
 * no number up to it will be sent again; `reply` is where the outcome goes, or "".
 */
export interface RecordHeader {
    readonly session: number;
    readonly n: number;
    readonly done: number;
    readonly reply: string;
}
/**
 * Creates a block, or replaces it under a higher epoch. Later records of the block do not repeat shape and
 * configuration.
 */
export interface InitRecord extends RecordHeader {
    readonly verb: "init";
    readonly epoch: number;
    readonly dtype: Dtype;
    /** Shape of the whole parameter. */
    readonly shape: readonly number[];
    /** First element of the block in the parameter, in C order. */
    readonly start: number;
    /** Elements of the block. */
    readonly count: number;
    readonly config: ParameterConfig;
}
/** What a push does with its elements. */
export type PushOperation = 
/** value = alpha · value + beta · new. */
{
    readonly op: "mix";
    readonly alpha: number;
    readonly beta: number;
}
/**
 * One step of the block's optimizer; `lr` overrides its learning rate. `step` is the trainer's, in
 * a job that is synchronized by steps; `seen` the block's version that the gradient was made from.
 */
 | {
    readonly op: "grad";
    readonly lr?: number | undefined;
    readonly step?: number | undefined;
    readonly seen?: number | undefined;
};
/** Updates a block, or a part of it. */
export interface PushRecord extends RecordHeader {
    readonly verb: "push";
    readonly epoch: number;
    /** Element type of the block. */
    readonly dtype: Dtype;
    /** How the elements are written, if not as the type says. */
    readonly encoding?: Encoding | undefined;
    /**
     * L2 norm of the trainer's whole tensor as encoded, not of this block. Required for a gradient that
     * is clipped by its norm; otherwise only checked for being finite.
     */
    readonly norm?: number | undefined;
    readonly operation: PushOperation;
    /** Set if the record has only some elements: the tensor bytes then begin with an index. */
    readonly part?: PartCounts | undefined;
}
/** Overwrites a block's values. */
export interface SetRecord extends RecordHeader {
    readonly verb: "set";
    readonly epoch: number;
    readonly dtype: Dtype;
}
/** Tells a shard that the trainer has sent everything of its steps up to this one. */
export interface ClockRecord extends RecordHeader {
    readonly verb: "clock";
    readonly step: number;
}
/** A trainer's journal record about a block, without its tensor bytes. */
export type TrainerRecord = InitRecord | PushRecord | SetRecord;
/** Begins a record with room for its tensor bytes; fill and seal it as {@link DraftMessage} says. */
export declare function draftRecord(record: TrainerRecord, dataBytes: number, allocate?: Allocate): DraftMessage;
/** Writes a trainer's clock as a message. */
export declare function encodeClock(record: ClockRecord): Uint8Array;
/**
 * Reads the header of a trainer's record. By it the fold decides whether the record counts.
 * @throws BAD_MESSAGE if one is missing or not a number.
 */
export declare function parseRecordHeader(fields: Fields): RecordHeader;
/**
 * Reads a trainer's record of a verb and checks its values. Whether it fits its block is checked by the fold.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_CONFIG naming what is wrong.
 */
export declare function parseTrainerRecord(verb: TrainerVerb, { session, n, done, reply }: RecordHeader, message: Message): TrainerRecord;
/** Reads a clock; @throws BAD_MESSAGE if the fields are not a valid clock. */
export declare function parseClock(fields: Fields): ClockRecord;
/** @throws BAD_LENGTH unless the bytes are whole elements, at least one. */
export declare function checkWholeElements(data: Uint8Array, elementBytes: number): void;
/**
 * Reads the operation of a push, with a gradient's step and the version that the gradient was made from.
 * @throws BAD_MESSAGE or BAD_VALUE
 */
export declare function parseOperation(fields: Fields, step: unknown, seen: unknown): PushOperation;
/** Bytes of the entries of a note as msgpack. */
export declare const NOTE_BYTES_MAX = 4096;
/** Entries of one note. */
export declare const NOTE_ENTRIES_MAX = 64;
/** Bytes of the name of an entry, in UTF-8. */
export declare const NOTE_NAME_BYTES_MAX = 128;
/** Bytes of a note record: its header and its entries. */
export declare const NOTE_RECORD_BYTES_MAX: number;
/** The shard whose journal takes a job's notes. */
export declare const NOTE_SHARD = 0;
/** What an entry of a note may be: a finite number, a text or a boolean. */
export type NoteValue = number | string | boolean;
/** What a trainer remarks: values by name. */
export type NoteEntries = Readonly<Record<string, NoteValue>>;
/** A remark of a trainer: it has its place in the journal and changes no block. */
export interface NoteRecord extends RecordHeader {
    readonly verb: "note";
    readonly note: NoteEntries;
}
/** Writes a trainer's note as a message. */
export declare function encodeNote({ verb: _verb, ...fields }: NoteRecord): Uint8Array;
/**
 * Reads the note in a record's fields. Part of the fold: what it checks belongs to a version of the rules.
 * The size of the record bounds that of all entries.
 * @throws BAD_MESSAGE if they are not those of a note, BAD_VALUE or TOO_LARGE as {@link checkNote} does.
 */
export declare function parseNote(fields: Fields): NoteRecord;
/**
 * Returns the entries, if a note can carry them.
 * @throws BAD_VALUE for none, for a name that is empty or too long, and for a value that is neither a
 * finite number nor a text nor a boolean; TOO_LARGE for too many entries or bytes.
 */
export declare function checkNote(entries: Readonly<Record<string, unknown>>): NoteEntries;
//# sourceMappingURL=records.d.ts.map