import type { KvBucket } from "./kv-bucket.ts";
/** A key, and the JSON value that is written under it. */
export type ChainedEntry = readonly [key: string, value: unknown];
/** The writes of one run into a bucket, each directly after the one before. */
export declare class BucketChain {
    #private;
    /**
     * `token`: that of the run, whose last write has the id {@link firstId}. `overtaken` makes the error for a write of
     * somebody else that has ended the chain.
     */
    constructor(bucket: Pick<KvBucket, "writeAfter">, token: string, overtaken: () => Error);
    /** Returns the id of the write with which the chain of a run begins. */
    static firstId(token: string): string;
    /**
     * Writes entries in this order, many of them at a time.
     * @throws the error of `overtaken` if somebody else has written to the bucket since the chain began: the entries up
     * to that write are stored, and none after it; the errors of {@link KvBucket}.
     */
    write(entries: readonly ChainedEntry[]): Promise<void>;
}
//# sourceMappingURL=bucket-chain.d.ts.map