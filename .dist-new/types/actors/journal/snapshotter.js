import { draftMessage, PserverError, packValue, sealMessage, } from "../../protocol/index.js";
import { blockKey, } from "./snapshot-store.js";
/**
 * A cut of a shard between two records, while the shard goes on. Blocks that have changed since the last snapshot
 * must be stored; a block that changes before it is stored is copied first. Does no I/O.
 */
export class SnapshotCut {
    /** The fold at the cut, without values. */
    fold;
    /** The last record of the cut, with its checksum. */
    seq;
    recordCrc;
    /** Checksum of the journal up to that record. */
    checksum;
    #budget;
    #onReleased;
    /** Pieces of the blocks at the cut; undefined until they are stored. */
    #pieces = new Map();
    #pending = new Map();
    /** Blocks removed since the cut. Their pieces must not be reused for a new block of the same name. */
    #removed = new Set();
    /**
     * `stored` has the pieces that the newest manifest names, by block. `budget` limits the copies. `onReleased` is
     * called when copies were released.
     */
    constructor(shard, stored, budget, onReleased = () => undefined) {
        this.fold = shard.saveState();
        this.seq = shard.seq;
        this.recordCrc = shard.lastCrc;
        this.checksum = shard.noted.checksum;
        this.#budget = budget;
        this.#onReleased = onReleased;
        for (const block of shard.blocks()) {
            const { epoch, version, accumulated } = block;
            const key = keyOf(block);
            const known = stored.get(key);
            const isStored = known !== undefined && isOfVersion(known, block);
            this.#pieces.set(key, isStored ? known : undefined);
            if (isStored)
                continue;
            const pending = { block, version: { epoch, version, accumulated }, copies: undefined };
            this.#pending.set(key, pending);
        }
    }
    /** Blocks that are neither stored nor being stored. */
    get pending() {
        return [...this.#pending.values()];
    }
    /** Whether a change of the shard may still need a copy. */
    get mayCopy() {
        return this.#pending.size > 0;
    }
    /** Copies a pending block; must be called before its bytes change or are freed. */
    beforeChange(block) {
        const pending = this.#pending.get(keyOf(block));
        if (pending?.block !== block || pending.copies !== undefined)
            return;
        pending.copies = slotBytes(block).map((bytes) => {
            const copy = this.#budget.pool.take(bytes.length);
            copy.set(bytes);
            return copy;
        });
        this.#budget.copied(block.heldBytes);
    }
    /** Notes that a block is gone; a new one may have its epoch and version again. */
    blockRemoved(block) {
        this.#removed.add(keyOf(block));
    }
    /**
     * Passes the slots of a pending block, as they were at the cut, to `store`, which must copy them at once. After
     * that the block may change.
     */
    release(pending, store) {
        const { block, copies } = pending;
        const result = store(copies ?? slotBytes(block));
        this.#pending.delete(keyOf(block));
        this.#freeCopies(pending);
        return result;
    }
    /** Adds the stored pieces of a block. */
    stored(pieces) {
        this.#pieces.set(keyOf(pieces), pieces);
    }
    /** The pieces of all blocks of the cut. @throws INTERNAL if a block has not been stored. */
    get pieces() {
        return [...this.#pieces].map(([key, pieces]) => {
            if (pieces !== undefined)
                return pieces;
            throw new PserverError("INTERNAL", `snapshot: block ${key} was not stored`);
        });
    }
    /** Pieces, by block, that the next cut can use once this one is committed. */
    get reusable() {
        const entries = this.pieces.map((pieces) => [keyOf(pieces), pieces]);
        return new Map(entries.filter(([key]) => !this.#removed.has(key)));
    }
    /** Ends the cut: releases all copies. */
    end() {
        for (const pending of this.#pending.values())
            this.#freeCopies(pending);
        this.#pending.clear();
    }
    #freeCopies({ block, copies }) {
        if (copies === undefined)
            return;
        for (const copy of copies)
            this.#budget.pool.giveBack(copy);
        this.#budget.copied(-block.heldBytes);
        this.#onReleased();
    }
}
function keyOf({ parameter, index }) {
    return blockKey(parameter, index);
}
function isOfVersion(pieces, { epoch, version, accumulated }) {
    return pieces.epoch === epoch && pieces.version === version && pieces.accumulated === accumulated;
}
function slotBytes(block) {
    return Array.from({ length: 1 + block.slots }, (_, slot) => block.slotBytes(slot));
}
/** How many blocks are stored at a time. */
const BLOCKS_IN_FLIGHT = 4;
/** Stores cuts of a shard, one at a time, while the shard goes on. */
export class Snapshotter {
    #deps;
    #stored;
    /** The cut being stored. */
    #cut;
    #storing;
    /** What the last cut has left that failed. */
    #left = new Set();
    constructor(deps) {
        this.#deps = deps;
        this.#stored = new Map(deps.stored);
    }
    /** Whether a change of the shard might need one more copy than the worker may hold. */
    get holdsUp() {
        return this.#cut?.mayCopy === true && this.#deps.budget.isSpent;
    }
    /** Must be called before a block's bytes change or are freed. */
    beforeChange(block) {
        this.#cut?.beforeChange(block);
    }
    /** Must be called when a block is gone: a new one may have its epoch and version again. */
    blockRemoved(block) {
        this.#stored.delete(blockKey(block.parameter, block.index));
        this.#cut?.blockRemoved(block);
    }
    /**
     * Stores a cut of the shard and commits it after the manifest with sequence `previousSeq`. Makes the cut and calls
     * `header` when all earlier cuts of the worker have ended. Calls `onStored` before the next cut, whose header
     * depends on this one.
     * @returns the manifest.
     * @throws NOT_OWNER if another owner has committed since.
     */
    cut(shard, header, previousSeq, onStored) {
        return this.#deps.budget.runInOrder(async () => {
            const stored = await this.#makeCut(shard, header(), previousSeq());
            onStored(stored);
            return stored;
        });
    }
    /**
     * Writes the shard's newest manifest again under the next term, when all earlier cuts of the worker have ended.
     * Only then `newest` is called. Calls `onStored` before the next cut.
     * @returns the sequence of the former manifest.
     * @throws NOT_OWNER if another owner has committed since.
     */
    renew(newest, onStored) {
        return this.#deps.budget.runInOrder(async () => {
            const former = newest();
            const manifest = { ...former.manifest, term: former.manifest.term + 1 };
            const seq = await this.#run((storing) => this.#commit(storing, manifest, former.seq));
            onStored({ seq, manifest });
            return former.seq;
        });
    }
    /** Ends what is being stored: its messages were lost with the connection, and no answers will come. */
    abort(reason) {
        this.#storing?.abort(reason);
    }
    async #makeCut(shard, header, previousSeq) {
        const { budget, onProgress } = this.#deps;
        const cut = new SnapshotCut(shard, this.#stored, budget, onProgress);
        this.#cut = cut;
        try {
            return await this.#run((storing) => this.#storeCut({ cut, storing }, header, previousSeq));
        }
        finally {
            this.#cut = undefined;
            cut.end();
        }
    }
    /** Runs `store` until it is done or aborted. */
    async #run(store) {
        let abort = () => undefined;
        const aborted = new Promise((_resolve, reject) => {
            abort = reject;
        });
        const storing = { ended: undefined, abort, unnamed: new Set() };
        this.#storing = storing;
        try {
            return await Promise.race([store(storing), aborted]);
        }
        finally {
            storing.ended = new PserverError("CLOSED", "the snapshot has ended");
            this.#storing = undefined;
        }
    }
    async #storeCut(current, header, previousSeq) {
        const { cut, storing } = current;
        await this.#removeLeft();
        this.#left = storing.unnamed;
        const bytes = cut.pending.reduce((sum, { block }) => sum + block.heldBytes, 0);
        await this.#deps.store.requireRoom(bytes);
        await this.#storePending(current);
        const { fold, seq: cutSeq, recordCrc, checksum, pieces } = cut;
        const state = { fold, pieces };
        const manifest = {
            ...header,
            seq: cutSeq,
            ...{ recordCrc, checksum },
            state: await this.#storeState(storing, packValue(state)),
            pieces: pieces.flatMap((entry) => entry.slots.map((slot) => slot.seq)),
        };
        await this.#deps.beforeCommit?.(manifest);
        const seq = await this.#commit(storing, manifest, previousSeq);
        this.#stored = cut.reusable;
        return { seq, manifest };
    }
    async #commit(storing, manifest, previousSeq) {
        if (storing.ended !== undefined)
            throw storing.ended;
        // From here on the manifest may be stored, whatever the broker answers.
        storing.unnamed.clear();
        const seq = await this.#deps.store.commit(manifest, previousSeq, () => storing.ended);
        if (storing.ended !== undefined)
            throw storing.ended;
        return seq;
    }
    async #storePending(current) {
        const { budget } = this.#deps;
        const queue = [...current.cut.pending];
        const work = async () => {
            for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
                const { heldBytes } = next.block;
                await budget.acquire(heldBytes);
                try {
                    if (current.storing.ended !== undefined)
                        throw current.storing.ended;
                    current.cut.stored(await this.#storeBlock(current, next));
                }
                finally {
                    budget.release(heldBytes);
                }
            }
        };
        await Promise.all(Array.from({ length: BLOCKS_IN_FLIGHT }, work));
    }
    async #storeBlock(current, pending) {
        const { subjects, shard, budget } = this.#deps;
        const { block, version } = pending;
        const { parameter, index } = block;
        const drafts = current.cut.release(pending, (slots) => slots.map((bytes, slot) => {
            const fields = { parameter, index, slot, ...version };
            const draft = draftMessage(fields, bytes.length, (size) => budget.pool.take(size));
            draft.data.set(bytes);
            return draft;
        }));
        const slots = [];
        for (const [slot, draft] of drafts.entries()) {
            const subject = subjects.piece(shard, parameter, index, slot);
            slots.push(await this.#publish(current.storing, subject, sealMessage(draft)));
            // Only after an acknowledgement is the buffer free: after an error the message may still be on its way.
            budget.pool.giveBack(draft.bytes);
        }
        return { parameter, index, ...version, slots };
    }
    async #storeState(storing, bytes) {
        const { subjects, shard, partBytesMax } = this.#deps;
        const refs = [];
        for (let start = 0; start < bytes.length; start += partBytesMax) {
            const part = bytes.subarray(start, start + partBytesMax);
            const draft = draftMessage({ part: refs.length }, part.length);
            draft.data.set(part);
            const subject = subjects.snapshotState(shard, refs.length);
            refs.push(await this.#publish(storing, subject, sealMessage(draft)));
        }
        return refs;
    }
    async #publish(storing, subject, bytes) {
        if (storing.ended !== undefined)
            throw storing.ended;
        const ref = await this.#deps.store.publish(subject, bytes);
        storing.unnamed.add(ref.seq);
        return ref;
    }
    /** Removes the messages of a cut that failed, so that attempts do not fill the stream. */
    async #removeLeft() {
        await this.#deps.store.remove(this.#left);
        this.#left.clear();
    }
}
/** Limit of the bytes in flight to the broker. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;
/** Limit of the bytes in copies; beyond it, records that need more copies wait. */
const COPIED_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Limits the memory that snapshots take beside the values, for all shards of a worker: their snapshots may all become
 * due at once, as after a burst of updates to a whole model.
 */
export class SnapshotBudget {
    /** Pool for messages and copies. */
    pool;
    #waiting = [];
    #inFlightBytes = 0;
    #copiedBytes = 0;
    #lastCut = Promise.resolve();
    constructor(pool) {
        this.pool = pool;
    }
    /** Whether records that need more copies have to wait. */
    get isSpent() {
        return this.#copiedBytes >= COPIED_BYTES_MAX;
    }
    /** Bytes held in copies. */
    get copiedBytes() {
        return this.#copiedBytes;
    }
    /**
     * Runs one cut after the other: a shard that waits until copies are released holds back delivered records, and all
     * shards at once would hold back many.
     */
    async runInOrder(cut) {
        const result = this.#lastCut.then(cut);
        // The error of an earlier cut is for its own shard.
        this.#lastCut = result.catch(() => undefined);
        return await result;
    }
    /** Waits, in order, until so many more bytes may be sent. More bytes than the limit are sent alone. */
    acquire(bytes) {
        return new Promise((resolve) => {
            this.#waiting.push({ bytes, admit: resolve });
            this.#admit();
        });
    }
    /** Releases what {@link acquire} admitted. */
    release(bytes) {
        this.#inFlightBytes -= bytes;
        this.#admit();
    }
    /** Counts bytes in copies; a negative number when they are released. */
    copied(bytes) {
        this.#copiedBytes += bytes;
    }
    #admit() {
        for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
            if (this.#inFlightBytes > 0 && this.#inFlightBytes + next.bytes > IN_FLIGHT_BYTES_MAX)
                return;
            this.#waiting.shift();
            this.#inFlightBytes += next.bytes;
            next.admit();
        }
    }
}
//# sourceMappingURL=snapshotter.js.map