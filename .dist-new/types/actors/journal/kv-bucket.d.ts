import type { NatsConnection } from "@nats-io/transport-node";
import { type Fields } from "../../protocol/index.ts";
/** An entry: its JSON value, and the revision that an update must name. */
export interface KvEntry {
    readonly value: unknown;
    /** Rises with every write to any key of the bucket. */
    readonly revision: number;
}
/**
 * A bucket of small JSON values that change by compare-and-swap only. A read sees every write that was answered
 * before the read began, unless the leader that answers has been replaced and has not heard of it. So decide by the
 * compare-and-swap that follows the read.
 *
 * Every method throws TIMEOUT, JETSTREAM_UNAVAILABLE, CLOSED or the like when the broker does not answer, a write
 * also JOURNAL_FULL or JOURNAL_FAULT when it cannot store. A write that ended so may have happened or may yet happen:
 * read again before deciding.
 */
export interface KvBucket {
    /** Returns when the bucket was made, as text; this distinguishes it from another bucket of the same name. */
    created(): Promise<string>;
    /** Reads the entry under `key`; undefined if there is none. */
    read(key: string): Promise<KvEntry | undefined>;
    /** Writes an entry that does not exist and returns its revision; undefined if it exists. */
    create(key: string, value: unknown): Promise<number | undefined>;
    /** Replaces the entry of that revision; undefined if somebody else has written since. */
    update(key: string, value: unknown, revision: number): Promise<number | undefined>;
    /** Removes the entry of that revision; false if somebody else has written since. */
    remove(key: string, revision: number): Promise<boolean>;
    /** Lists every key that begins with `prefix` (which ends in a dot), in no order. */
    keys(prefix: string): Promise<string[]>;
    /**
     * Reports every entry under such keys that was written after a revision, in the order of writes, and returns the
     * revision after which to ask next. It sees every write that was answered before it began. Only for keys that are
     * never removed: removals leave no trace.
     */
    changes(prefix: string, afterRevision: number, onEntry: (key: string, entry: KvEntry) => void): Promise<number>;
}
/**
 * Replaces the entry of that revision, or writes the first entry if the revision is undefined. Returns the new
 * revision; undefined if somebody else has written since.
 */
export declare function replaceEntry(bucket: Pick<KvBucket, "create" | "update">, key: string, value: unknown, revision: number | undefined): Promise<number | undefined>;
/** Options of {@link openBucket}: where and how the bucket is kept. */
export interface BucketOptions {
    readonly connection: NatsConnection;
    readonly bucket: string;
    readonly storage: "file" | "memory";
    /** Number of replicas. By default 1 for a new bucket, and unchanged for an existing one. */
    readonly replicas?: number;
    /** How long an entry lives after it was written; for ever by default. */
    readonly ttlMs?: number;
    /** Timeout of one request to the broker; 5 s by default, or a fifth of `ttlMs`. */
    readonly timeoutMs?: number;
}
/**
 * Opens a JetStream KV bucket; makes it if it does not exist.
 * @throws JOB_EXISTS if the bucket is kept in another way than asked for.
 */
export declare function openBucket(options: BucketOptions): Promise<KvBucket>;
/**
 * Opens an existing bucket without asking the broker for it. If it does not exist, every method throws
 * JETSTREAM_UNAVAILABLE.
 */
export declare function openExistingBucket(connection: NatsConnection, bucket: string): Promise<KvBucket>;
/** Version of the entries that this program writes. */
export declare const ENTRY_FORMAT = 1;
/**
 * Reads an entry of this format with `parse`.
 * @throws BAD_VERSION for an entry of another format, INTERNAL if `parse` throws.
 */
export declare function readEntry<Result>(value: unknown, key: string, parse: (fields: Fields) => Result): Result;
//# sourceMappingURL=kv-bucket.d.ts.map