import { ensureError, PserverError } from "../../protocol/index.js";
import { replaceEntry } from "./kv-bucket.js";
import { isLater, nextWatermark, parseWatermark, toWatermarkEntry, watermarkKey, } from "./watermark.js";
/** Attempts to write a watermark that another owner changes at the same time. */
const TRIES_MAX = 4;
/**
 * Reads and writes the watermark of one shard in the job's bucket, for one of its owners. A watermark never goes
 * back: each write names the revision that this owner has read or written, so a deposed owner cannot overwrite the
 * watermark of its successor.
 *
 * The methods throw the errors of {@link KvBucket}.
 */
export class WatermarkKeeper {
    #bucket;
    #shard;
    #watermark;
    #revision;
    /** How far this host has folded, whether or not that could be written, and when the bucket was made. */
    #folded;
    constructor(records, shard) {
        this.#bucket = records;
        this.#shard = shard;
    }
    /** The watermark last read or written. */
    get last() {
        return this.#watermark;
    }
    /**
     * Reads the watermark; undefined if there is none. An entry written for a former bucket of this name does not
     * count: that broker was emptied, and the entry says nothing about the present shard. If this host has folded more
     * than the entry says, that counts: brokers that lose records with their power lose the entry with them.
     * @throws BAD_VERSION, INTERNAL if it cannot be read.
     */
    async read() {
        const key = watermarkKey(this.#shard);
        const stored = await this.#bucket.read(key);
        const entry = stored && parseWatermark(stored.value, key);
        const bucket = await this.#bucket.created();
        this.#watermark = entry?.bucket === bucket ? entry.watermark : undefined;
        this.#revision = stored?.revision;
        if (this.#folded?.bucket !== bucket)
            return this.#watermark;
        const { progress } = this.#folded;
        return isLater(progress, this.#watermark)
            ? nextWatermark(progress, this.#watermark)
            : this.#watermark;
    }
    /**
     * Writes a watermark, with the checksums of earlier ones, unless the present one is as late or of a later owner.
     * {@link read} must have been called before.
     * @throws BUSY if others keep changing it at the same time.
     */
    async raise(progress) {
        const bucket = await this.#bucket.created();
        const folded = this.#folded?.bucket === bucket ? this.#folded.progress : undefined;
        if (isLater(progress, folded))
            this.#folded = { progress, bucket };
        for (let tries = 0; tries < TRIES_MAX; tries++) {
            if (!isLater(progress, this.#watermark) || progress.term < (this.#watermark?.term ?? 0))
                return;
            const watermark = nextWatermark(progress, this.#watermark);
            const key = watermarkKey(this.#shard);
            const record = toWatermarkEntry({ watermark, bucket });
            const revision = await replaceEntry(this.#bucket, key, record, this.#revision);
            if (revision !== undefined) {
                this.#watermark = watermark;
                this.#revision = revision;
                return;
            }
            // Another owner has written since, or the answer to an earlier write of this one was lost.
            await this.read();
        }
        const text = `mark of shard ${this.#shard}: changed by others ${TRIES_MAX} times in a row`;
        throw new PserverError("BUSY", text, { shard: this.#shard });
    }
}
/** Writes the watermarks of one owner, one at a time, and reports failures. */
export class WatermarkWriter {
    #keeper;
    #onFailed;
    #writing;
    #hasToldFailure = false;
    /** `onFailed` is called for the first failure after a success. */
    constructor(keeper, onFailed) {
        this.#keeper = keeper;
        this.#onFailed = onFailed;
    }
    /** Writes a watermark, unless a write is under way: the next call will write a later one. */
    write(progress) {
        if (progress === undefined)
            return Promise.resolve();
        this.#writing ??= this.#raise(progress).finally(() => {
            this.#writing = undefined;
        });
        return this.#writing;
    }
    /** Writes a watermark after a write under way, which may be of an earlier one. */
    async writeNext(progress) {
        await this.#writing;
        await this.write(progress);
    }
    async #raise(progress) {
        try {
            await this.#keeper.raise(progress);
            this.#hasToldFailure = false;
        }
        catch (error) {
            if (!this.#hasToldFailure)
                this.#onFailed(ensureError(error));
            this.#hasToldFailure = true;
        }
    }
}
//# sourceMappingURL=watermark-keeper.js.map