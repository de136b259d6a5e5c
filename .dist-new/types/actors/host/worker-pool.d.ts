import { type Fields, PserverError, type WireError } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { JournalSettings } from "../journal/journal.ts";
import type { ContinuedShard } from "../journal/next-generation.ts";
import type { ShardTrouble } from "../owner/serving-shard.ts";
/** Callbacks of {@link WorkerPool}. */
export interface WorkerPoolEvents {
    readonly onServing: (shard: number) => void;
    readonly onRecovered: (recovered: ContinuedShard) => void;
    readonly onFellBack: (fallen: ContinuedShard) => void;
    readonly onTrouble: (type: ShardTrouble, shard: number, error: PserverError) => void;
    /** A worker thread has ended by itself: the host cannot go on. */
    readonly onCrash: (error: PserverError) => void;
}
/** The worker threads of a host, which share its shards evenly. */
export declare class WorkerPool {
    #private;
    constructor(events: WorkerPoolEvents);
    /** Starts `count` workers; @throws the error of the first that cannot start. */
    start(count: number, setup: Omit<WorkerSetup, "index">): Promise<void>;
    /** The last statuses of the shards, which workers send twice a second. */
    get statuses(): Fields[];
    /**
     * Gives a shard, whose lease must be held, to the worker that owned it, or else to the one with the fewest shards.
     */
    own(shard: number): void;
    /** Takes a shard from its worker, which stops answering for it. */
    disown(shard: number): void;
    /**
     * Has the worker of a shard fold all that its journal holds, store a snapshot of that, and fold nothing more. The
     * shard's lease must stay held until then. `onProgress` is called now and then while there is progress.
     * @returns why the shard could not be saved; undefined if it was. TIMEOUT without progress for some seconds.
     */
    save(shard: number, onProgress: () => void): Promise<PserverError | undefined>;
    /** Closes all workers; one that does not react is terminated. */
    close(): Promise<void>;
}
/** Setup of a worker thread. */
export interface WorkerSetup {
    readonly connection: ConnectionSettings;
    /** Settings of the connection that answers. */
    readonly answerConnection: ConnectionSettings;
    readonly job: string;
    /** Whether requests may come from another account of the broker. */
    readonly acrossAccounts: boolean;
    readonly host: string;
    readonly index: number;
    readonly shards: number;
    readonly leaseMs: number;
    /** The buffer of the host's `LeaseClock`. */
    readonly leases: SharedArrayBuffer;
    readonly journal: JournalSettings;
    /** Whether the job has a tape. */
    readonly tape: boolean;
    /** Each shard's part of the bytes that the tape may have. */
    readonly tapeBytesMax: number;
    readonly retainBytes: number;
    readonly snapshotBytes: number;
    /** Journal bytes that may be under way to one shard. */
    readonly creditBytes: number;
    /** The buffer of the host's `HostMemory`, and the most that the host may use for values. */
    readonly memory: SharedArrayBuffer;
    readonly memoryLimitBytes: number | undefined;
}
/** Requests of the main thread to a worker. */
export interface WorkerCalls {
    own(shard: number): void;
    disown(shard: number): void;
    /** Stores all of a shard whose journal may go with the broker; its lease is held until that is done. */
    save(shard: number): void;
    close(nothing: undefined): void;
}
/** Messages of a worker to the main thread. */
export type WorkerEvent = {
    readonly type: "serving";
    readonly shard: number;
} | {
    readonly type: ShardTrouble;
    readonly shard: number;
    readonly error: WireError;
} | {
    readonly type: "recovered" | "fell-back";
    readonly continued: ContinuedShard;
} | {
    readonly type: "statuses";
    readonly statuses: readonly Fields[];
};
//# sourceMappingURL=worker-pool.d.ts.map