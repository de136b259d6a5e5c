import { type Allocate, type DraftMessage, type Message } from "../codec.ts";
import { type RecordHeader, type TrainerRecord } from "./records.ts";
/** An entry to be written; its bytes are written later, to the draft. */
export interface BatchItem {
    readonly parameter: string;
    readonly index: number;
    readonly record: TrainerRecord;
    readonly dataBytes: number;
}
/** Returns the bytes of an entry with its padding. */
export declare function paddedBytes(bytes: number): number;
/**
 * Begins a batch with room for the tensor bytes of its items: each takes {@link paddedBytes}, in order, and
 * the padding is zeroed. Fill and seal the batch as {@link DraftMessage} says. Consecutive items of one
 * parameter become a group: their records differ in block, part and `seen` only.
 */
export declare function draftBatch({ session, n, done, reply }: RecordHeader, items: readonly BatchItem[], allocate?: Allocate): DraftMessage;
/** An update of one block in a batch, as if it were a record of its own. */
export interface BatchEntry {
    readonly parameter: string;
    readonly index: number;
    /** Its record, with the header of the batch. Entries of one group may share the object. */
    readonly record: TrainerRecord;
    /** Its tensor bytes without padding: a view. The index of a part is packed. */
    readonly data: Uint8Array;
}
/**
 * Reads the entries of a batch and checks the values of each. Whether they fit their blocks is checked by the
 * fold.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_VALUE or BAD_CONFIG, naming the group or
 * its block; TOO_LARGE for more than `entriesMax` entries.
 */
export declare function parseBatch(header: RecordHeader, { fields, data }: Message, entriesMax: number): BatchEntry[];
//# sourceMappingURL=batch-records.d.ts.map