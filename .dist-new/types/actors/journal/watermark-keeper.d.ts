import { PserverError } from "../../protocol/index.ts";
import { type KvBucket } from "./kv-bucket.ts";
import { type FoldProgress, type Watermark } from "./watermark.ts";
/** The bucket of watermarks. */
type WatermarkBucket = Pick<KvBucket, "created" | "read" | "create" | "update">;
/**
 * Reads and writes the watermark of one shard in the job's bucket, for one of its owners. A watermark never goes
 * back: each write names the revision that this owner has read or written, so a deposed owner cannot overwrite the
 * watermark of its successor.
 *
 * The methods throw the errors of {@link KvBucket}.
 */
export declare class WatermarkKeeper {
    #private;
    constructor(records: WatermarkBucket, shard: number);
    /** The watermark last read or written. */
    get last(): Watermark | undefined;
    /**
     * Reads the watermark; undefined if there is none. An entry written for a former bucket of this name does not
     * count: that broker was emptied, and the entry says nothing about the present shard. If this host has folded more
     * than the entry says, that counts: brokers that lose records with their power lose the entry with them.
     * @throws BAD_VERSION, INTERNAL if it cannot be read.
     */
    read(): Promise<Watermark | undefined>;
    /**
     * Writes a watermark, with the checksums of earlier ones, unless the present one is as late or of a later owner.
     * {@link read} must have been called before.
     * @throws BUSY if others keep changing it at the same time.
     */
    raise(progress: FoldProgress): Promise<void>;
}
/** Writes the watermarks of one owner, one at a time, and reports failures. */
export declare class WatermarkWriter {
    #private;
    /** `onFailed` is called for the first failure after a success. */
    constructor(keeper: Pick<WatermarkKeeper, "raise">, onFailed: (error: PserverError) => void);
    /** Writes a watermark, unless a write is under way: the next call will write a later one. */
    write(progress: FoldProgress | undefined): Promise<void>;
    /** Writes a watermark after a write under way, which may be of an earlier one. */
    writeNext(progress: FoldProgress | undefined): Promise<void>;
}
export {};
//# sourceMappingURL=watermark-keeper.d.ts.map