import { type Position } from "../../protocol/messages/position.ts";
import { type BlockUpdate, type Failure } from "./update-call.ts";
/** What {@link Positions} tell the rest of the core. */
export interface PositionsListener {
    /** Called when the journal of position `seen`, the last one seen in it, has been replaced. */
    journalReplaced(shard: number, seen: Position): void;
}
/** A list linked through its updates: every operation takes constant time and no memory. */
export declare class UpdateList {
    #private;
    get first(): BlockUpdate | undefined;
    /** Adds an update at the end; it must be in no list. */
    append(update: BlockUpdate): void;
    /** Adds an update before all others; it must be in no list. */
    prepend(update: BlockUpdate): void;
    /** Removes an update, which must be in this list. */
    remove(update: BlockUpdate): void;
}
/**
 * The records without a PubAck, in the order of their last publication, and the bytes of their elements. A record that was given up stays until its PubAck can no longer come: its bytes may
 * still be in the buffers of the connection.
 */
export declare class InFlight {
    #private;
    /** Bytes of elements in flight. */
    get bytes(): number;
    get count(): number;
    /** The record whose last publication is oldest; the others follow by `next`. */
    get first(): BlockUpdate | undefined;
    /** Returns the record that a PubAck names. */
    get(slot: number, serial: number): BlockUpdate | undefined;
    /**
     * Returns whether this many more bytes are within a bound. A record larger than the bound is admitted
     * alone.
     */
    fits(bytes: number, bytesMax: number): boolean;
    /** Adds a record, and gives it a slot and serial. */
    add(update: BlockUpdate): void;
    /** Moves a record to the end, because it is published again. */
    moveToEnd(update: BlockUpdate): void;
    /** Removes a record, which must be in flight. */
    remove(update: BlockUpdate): void;
}
/**
 * What a session sends to one shard: waiting updates, open numbers, and `done`, the number up to which all
 * records are settled or given up. All open numbers lie in `done + 1 … last`, a range of at most `records`
 * numbers, and their records are a bounded amount of work: so no trainer is far ahead of the fold.
 */
export declare class ShardWindow {
    #private;
    readonly shard: number;
    /** Updates that wait to be sent, in order. */
    readonly waiting: UpdateList;
    /** Open records that are stored, in the order in which to ask for their outcomes. */
    readonly stored: UpdateList;
    /** The latest publication that the journal has answered, and when it has answered last. */
    ackedSendNumber: number;
    ackedAtMs: number;
    /** Time of the last request for outcomes. */
    askedAtMs: number;
    constructor(shard: number, records: number);
    get done(): number;
    /** The number that was opened last. */
    get last(): number;
    /** Whether the window has room for the first waiting update: a number, and the work that its record is. */
    get hasRoom(): boolean;
    /** Returns the record with a number, if the number is open. */
    get(n: number): BlockUpdate | undefined;
    /** Gives an update the next number. */
    open(update: BlockUpdate): void;
    /** Takes back the number that was given last: its record was never published. */
    takeBack(update: BlockUpdate): void;
    /** Closes the number of an open record, which is settled or given up. */
    close(update: BlockUpdate): void;
    /** Begins at number 1 for a new session; no number may be open. */
    restart(): void;
}
/**
 * The highest position seen in each shard, from PubAcks, answers, pull replies and the `at` of the
 * job. Pulls carry it, so that reads see the trainer's own writes and never go back.
 */
export declare class Positions {
    #private;
    constructor(listener: PositionsListener);
    /** Notes a position that was seen; a lower one changes nothing. */
    note(shard: number, { generation, seq }: Position): void;
    /** Notes a position that reads must have reached, although this trainer has seen nothing of it. */
    await(shard: number, { generation, seq }: Position): void;
    /** Returns the position in a shard; the beginning if nothing was seen. */
    get(shard: number): Position;
    /** Lists every position, as `finish` sends them, in the order of shards. */
    list(): (Position & {
        readonly shard: number;
    })[];
}
/**
 * Notes the position in the new journal that a JOURNAL_REPLACED names. Positions of the old generation no
 * longer mean anything.
 */
export declare function noteReplaced(positions: Positions, shard: number, failure: Failure): void;
//# sourceMappingURL=shard-window.d.ts.map