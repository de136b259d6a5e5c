import type { JetStreamClient } from "@nats-io/jetstream";
import { StreamPublisher } from "../../transport/jetstream.ts";
import { LeaseClock } from "../job/leases.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import type { WorkerContext } from "../owner/serving-shard.ts";
import type { WorkerEvent, WorkerSetup } from "./worker-pool.ts";
/** Parts of one worker thread besides those that its shards share. */
interface WorkerParts {
    readonly setup: WorkerSetup;
    readonly send: (message: WorkerEvent) => void;
    readonly leases: LeaseClock;
    readonly client: JetStreamClient;
    readonly bucket: KvBucket;
    readonly publisher: StreamPublisher;
    readonly context: WorkerContext;
}
/** Connects the shards of one worker thread; @throws NO_BROKER, DENIED or NO_JETSTREAM. */
export declare function openShardWorker(setup: WorkerSetup, send: (message: WorkerEvent) => void): Promise<ShardWorker>;
/**
 * The shards of one worker thread and the two connections they share: one reads journals and
 * writes snapshots, the other answers. Kept apart, a request never waits behind bulk data, and the one
 * that answers needs no permission to write anything but inboxes.
 */
export declare class ShardWorker {
    #private;
    constructor(parts: WorkerParts);
    /** Begins to report statuses, write watermarks and watch the connections. */
    start(): void;
    /** Takes a shard over; its lease was claimed. */
    own(shard: number): void;
    /** Stores all of a shard, as {@link ShardOwner.save} does, and calls `onProgress` while there is progress. */
    save(shard: number, onProgress: () => void): Promise<void>;
    /** Stops owning all shards and closes the connections. */
    close(): Promise<void>;
    /** Stops owning a shard, at once. */
    disown(shard: number): void;
}
export {};
//# sourceMappingURL=shard-worker.d.ts.map