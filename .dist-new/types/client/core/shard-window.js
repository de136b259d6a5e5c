import { UNSETTLED_BLOCK_BYTES, UNSETTLED_BYTES_MAX } from "../../protocol/limits.js";
import { laterPosition } from "../../protocol/messages/position.js";
import { expectedPosition } from "./update-call.js";
/** A list linked through its updates: every operation takes constant time and no memory. */
export class UpdateList {
    #first;
    #last;
    get first() {
        return this.#first;
    }
    /** Adds an update at the end; it must be in no list. */
    append(update) {
        update.previous = this.#last;
        if (this.#last === undefined)
            this.#first = update;
        else
            this.#last.next = update;
        this.#last = update;
    }
    /** Adds an update before all others; it must be in no list. */
    prepend(update) {
        update.next = this.#first;
        if (this.#first === undefined)
            this.#last = update;
        else
            this.#first.previous = update;
        this.#first = update;
    }
    /** Removes an update, which must be in this list. */
    remove(update) {
        const { previous, next } = update;
        if (previous === undefined)
            this.#first = next;
        else
            previous.next = next;
        if (next === undefined)
            this.#last = previous;
        else
            next.previous = previous;
        update.previous = undefined;
        update.next = undefined;
    }
}
/**
 * The records without a PubAck, in the order of their last publication, and the bytes of their elements. A record that was given up stays until its PubAck can no longer come: its bytes may
 * still be in the buffers of the connection.
 */
export class InFlight {
    #list = new UpdateList();
    #slots = [];
    #free = [];
    #serials = 0;
    #bytes = 0;
    #count = 0;
    /** Bytes of elements in flight. */
    get bytes() {
        return this.#bytes;
    }
    get count() {
        return this.#count;
    }
    /** The record whose last publication is oldest; the others follow by `next`. */
    get first() {
        return this.#list.first;
    }
    /** Returns the record that a PubAck names. */
    get(slot, serial) {
        const update = this.#slots[slot];
        return update?.serial === serial ? update : undefined;
    }
    /**
     * Returns whether this many more bytes are within a bound. A record larger than the bound is admitted
     * alone.
     */
    fits(bytes, bytesMax) {
        return this.#bytes === 0 || this.#bytes + bytes <= bytesMax;
    }
    /** Adds a record, and gives it a slot and serial. */
    add(update) {
        update.slot = this.#free.pop() ?? this.#slots.length;
        update.serial = ++this.#serials;
        this.#slots[update.slot] = update;
        this.#list.append(update);
        this.#bytes += update.dataBytes;
        this.#count += 1;
    }
    /** Moves a record to the end, because it is published again. */
    moveToEnd(update) {
        this.#list.remove(update);
        this.#list.append(update);
    }
    /** Removes a record, which must be in flight. */
    remove(update) {
        this.#list.remove(update);
        this.#slots[update.slot] = undefined;
        this.#free.push(update.slot);
        update.slot = -1;
        this.#bytes -= update.dataBytes;
        this.#count -= 1;
    }
}
/**
 * What a session sends to one shard: waiting updates, open numbers, and `done`, the number up to which all
 * records are settled or given up. All open numbers lie in `done + 1 … last`, a range of at most `records`
 * numbers, and their records are a bounded amount of work: so no trainer is far ahead of the fold.
 */
export class ShardWindow {
    shard;
    /** Updates that wait to be sent, in order. */
    waiting = new UpdateList();
    /** Open records that are stored, in the order in which to ask for their outcomes. */
    stored = new UpdateList();
    /** The latest publication that the journal has answered, and when it has answered last. */
    ackedSendNumber = 0;
    ackedAtMs = Number.NEGATIVE_INFINITY;
    /** Time of the last request for outcomes. */
    askedAtMs = Number.NEGATIVE_INFINITY;
    #records;
    /** The open records, each at its number modulo `records`. */
    #open = [];
    /** Work of the open records, see {@link UNSETTLED_BYTES_MAX}. */
    #unsettledBytes = 0;
    #last = 0;
    #done = 0;
    constructor(shard, records) {
        this.shard = shard;
        this.#records = records;
    }
    get done() {
        return this.#done;
    }
    /** The number that was opened last. */
    get last() {
        return this.#last;
    }
    /** Whether the window has room for the first waiting update: a number, and the work that its record is. */
    get hasRoom() {
        if (this.#last >= this.#done + this.#records)
            return false;
        const { first } = this.waiting;
        if (first === undefined || this.#unsettledBytes === 0)
            return true;
        return this.#unsettledBytes + workOf(first) <= UNSETTLED_BYTES_MAX;
    }
    /** Returns the record with a number, if the number is open. */
    get(n) {
        if (n <= this.#done || n > this.#last)
            return undefined;
        return this.#open[n % this.#records];
    }
    /** Gives an update the next number. */
    open(update) {
        this.#last += 1;
        update.n = this.#last;
        update.isOpen = true;
        this.#open[update.n % this.#records] = update;
        this.#unsettledBytes += workOf(update);
    }
    /** Takes back the number that was given last: its record was never published. */
    takeBack(update) {
        this.#remove(update);
        this.#last -= 1;
        update.n = 0;
    }
    /** Closes the number of an open record, which is settled or given up. */
    close(update) {
        this.#remove(update);
        while (this.#done < this.#last && this.get(this.#done + 1) === undefined)
            this.#done += 1;
    }
    /** Begins at number 1 for a new session; no number may be open. */
    restart() {
        this.#last = 0;
        this.#done = 0;
    }
    #remove(update) {
        this.#open[update.n % this.#records] = undefined;
        this.#unsettledBytes -= workOf(update);
        update.isOpen = false;
    }
}
/** Returns the bytes that count against {@link UNSETTLED_BYTES_MAX}. */
function workOf({ dataBytes, blocks }) {
    return dataBytes + blocks * UNSETTLED_BLOCK_BYTES;
}
const BEGINNING = { generation: 1, seq: 0 };
/**
 * The highest position seen in each shard, from PubAcks, answers, pull replies and the `at` of the
 * job. Pulls carry it, so that reads see the trainer's own writes and never go back.
 */
export class Positions {
    /** By shard: positions that a read must have reached. */
    #awaited = [];
    /** By shard: the highest position that this trainer has itself written or read. */
    #seen = [];
    #listener;
    constructor(listener) {
        this.#listener = listener;
    }
    /** Notes a position that was seen; a lower one changes nothing. */
    note(shard, { generation, seq }) {
        // Only the position of a reply is kept: the whole reply would keep the bytes of a block in memory.
        const position = { generation, seq };
        const before = this.#seen[shard];
        this.#seen[shard] = laterPosition(before, position);
        this.await(shard, position);
        if (before !== undefined && generation > before.generation) {
            this.#listener.journalReplaced(shard, before);
        }
    }
    /** Notes a position that reads must have reached, although this trainer has seen nothing of it. */
    await(shard, { generation, seq }) {
        this.#awaited[shard] = laterPosition(this.#awaited[shard], { generation, seq });
    }
    /** Returns the position in a shard; the beginning if nothing was seen. */
    get(shard) {
        return this.#awaited[shard] ?? BEGINNING;
    }
    /** Lists every position, as `finish` sends them, in the order of shards. */
    list() {
        return this.#awaited.flatMap((position, shard) => position === undefined ? [] : [{ shard, ...position }]);
    }
}
/**
 * Notes the position in the new journal that a JOURNAL_REPLACED names. Positions of the old generation no
 * longer mean anything.
 */
export function noteReplaced(positions, shard, failure) {
    const { generation } = expectedPosition(failure);
    if (generation > 0)
        positions.note(shard, { generation, seq: 0 });
}
//# sourceMappingURL=shard-window.js.map