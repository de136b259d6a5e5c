import { type KvBucket, type KvEntry } from "../journal/kv-bucket.ts";
/** Dependencies of reading an entry. */
export interface ReadDeps {
    readonly bucket: Pick<KvBucket, "read">;
}
/** Dependencies of changing an entry. */
export interface BucketDeps {
    readonly bucket: KvBucket;
    /** Waits between tries. */
    readonly pause: (delayMs: number) => Promise<void>;
}
/** The value of an entry as it was read or written, and the entry's revision; 0 if there is none. */
export interface Changed<Value> {
    readonly result: Value;
    readonly revision: number;
}
/** One entry of a job's bucket. It is read as `Stored`, which may say that there is none, and written as `Value`. */
export declare class BucketEntry<Stored, Value extends Stored = Stored> {
    #private;
    /** `triesMax`: how often a change tries before it gives up. */
    constructor(key: string, parse: (stored: KvEntry | undefined) => Stored, toJson: (value: Value) => unknown, triesMax?: number);
    /** Reads the value. @throws as `KvBucket` and the entry's parser do. */
    read({ bucket }: ReadDeps): Promise<Stored>;
    /**
     * Changes the entry by compare-and-swap, until a decision is written over the very entry on which it was made.
     * `decide` is called with the value as read, and again after each lost race. It leaves the entry alone by returning
     * the value that it got; any other value, an equal copy too, is written. A write whose answer was lost may have
     * happened: the entry is then read and decided on again, so `decide` must recognize its own write. `first`, the
     * value as it was read already with its revision, saves one read.
     * @throws BUSY if others were faster `triesMax` times, 24 by default; TIMEOUT if the broker did not answer three
     * times; and whatever `decide` throws, which ends it.
     */
    change({ bucket, pause }: BucketDeps, decide: (before: Stored) => Value | Promise<Value>, first?: Changed<Stored>): Promise<Changed<Value>>;
}
/** Key of the job's own lifecycle. */
export declare const JOB_KEY = "job";
/** Key of the counter of sessions. */
export declare const SESSION_KEY = "session";
/** Key of the session up to which ended ones have been, or are about to be, swept. */
export declare const SWEPT_KEY = "swept";
/** Key of the members: the trainers that keep step. */
export declare const MEMBERS_KEY = "members";
/** Prefix of the keys of all parameters. */
export declare const PARAMETER_KEYS = "param.";
/** Prefix of the keys of all trainers, in the job's bucket and among the leases. */
export declare const TRAINER_KEYS = "trainer.";
/** Returns the key of a parameter's entry. */
export declare function parameterKey(name: string): string;
/** Inverse of {@link parameterKey}; @throws BAD_NAME for any other key. */
export declare function parameterOfKey(key: string): string;
/** Returns the key of a trainer's entry, and of its lease. */
export declare function trainerKey(trainer: string): string;
//# sourceMappingURL=lock.d.ts.map