import { TRAINERS_MAX } from "../../../protocol/limits.js";
/** The part of a tape that one trainer may write at once, and then again in each {@link REFILL_MS}. */
const TRAINER_SHARE = 1 / 8;
/** Time in which a trainer that writes nothing gets its whole allowance back. */
const REFILL_MS = 3_600_000;
/**
 * The part of its allowance that a trainer gets back before its lines are written again: so these come in runs, in
 * which records follow each other.
 */
const RESUMED_SHARE = 1 / 16;
/** Trainers that are remembered; beyond that those with the most of their allowance left are forgotten. */
const REMEMBERED_MAX = 2 * TRAINERS_MAX;
/**
 * Divides the tape of a shard between trainers. Each has an allowance of bytes, which comes back with time; while it
 * is used up, the trainer's records get no lines. So nobody can fill the tape with lines of its own, before which all
 * others' would be dropped, in less than some hours. Times are those of the records.
 */
export class TapeAllowance {
    #bytesMax;
    #uses = new Map();
    /** `bytesMax`: bytes of the shard's part of the tape. */
    constructor(bytesMax) {
        this.#bytesMax = bytesMax * TRAINER_SHARE;
    }
    /**
     * Decides whether a trainer's next record gets no line. Returns the records that have none, with this one; undefined
     * if it gets its line.
     */
    leaveOut(trainer, { seq, timeMs }) {
        const use = this.#useOf(trainer, timeMs);
        const isOut = use.records > 0;
        const limit = isOut ? this.#bytesMax * (1 - RESUMED_SHARE) : this.#bytesMax;
        const isUsedUp = use.bytes >= limit;
        if (!isOut && !isUsedUp)
            return undefined;
        if (!isOut)
            use.fromSeq = seq;
        const records = use.records + 1;
        // The record with which the allowance is back stands for those before it: its line has their number.
        use.records = isUsedUp ? records : 0;
        const isTold = !isUsedUp || Number.isInteger(Math.log2(records));
        return { records, fromSeq: use.fromSeq, isTold };
    }
    /** Adds bytes that a trainer's lines have taken. */
    charge(trainer, bytes) {
        const use = this.#uses.get(trainer);
        if (use !== undefined)
            use.bytes += bytes;
    }
    #useOf(trainer, timeMs) {
        let use = this.#uses.get(trainer);
        if (use === undefined) {
            if (this.#uses.size >= REMEMBERED_MAX)
                this.#forgetHalf();
            use = { bytes: 0, atMs: timeMs, records: 0, fromSeq: 0 };
            this.#uses.set(trainer, use);
        }
        // The broker's clock may go back a little.
        const passedMs = Math.max(0, timeMs - use.atMs);
        use.bytes = Math.max(0, use.bytes - (passedMs * this.#bytesMax) / REFILL_MS);
        use.atMs += passedMs;
        return use;
    }
    #forgetHalf() {
        const byUse = [...this.#uses].sort(([, a], [, b]) => a.bytes - b.bytes);
        for (const [trainer] of byUse.slice(0, REMEMBERED_MAX / 2))
            this.#uses.delete(trainer);
    }
}
//# sourceMappingURL=tape-allowance.js.map