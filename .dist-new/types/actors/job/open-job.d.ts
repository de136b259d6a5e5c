import type { JetStreamClient, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { JobSubjects, PserverError } from "../../protocol/index.ts";
import { Journal } from "../journal/journal.ts";
import { type KvBucket } from "../journal/kv-bucket.ts";
import { type TapeStorage } from "../journal/tape-writer.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import { type StoredSettings, type WantedSettings } from "./job-settings.ts";
import { type Leases } from "./leases.ts";
/** A job's settings, the bucket that holds its entries, and its leases. */
export interface OpenedJob {
    readonly settings: StoredSettings;
    readonly bucket: KvBucket;
    /** When the bucket was made. */
    readonly created: string;
    readonly manager: JetStreamManager;
    readonly leases: Leases;
    /** Asks the broker how much the job's tape takes; undefined for a job without one. */
    readonly tapeStorage: () => Promise<TapeStorage | undefined>;
}
/** Options of {@link openJob}. */
export interface JobOpening {
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly subjects: JobSubjects;
    readonly wanted: WantedSettings;
    /** Where the leases are to be; without it in JetStream KV. */
    readonly etcd?: EtcdSpace | undefined;
}
/**
 * Opens a job, which is made with the wanted settings if it does not exist.
 * @throws JOB_EXISTS if it exists with other settings than those wanted, NO_SPACE if the broker has no
 * space for it.
 */
export declare function openJob(opening: JobOpening): Promise<OpenedJob>;
/** Returns how long one request about a lease may take: it must fail in time to be repeated. */
export declare function leaseTimeoutMs(leaseMs: number): number;
/**
 * Returns the largest limit of one journal, halving from the default, for which the broker has space on every shard.
 * @throws NO_SPACE if it has none for the lowest.
 */
export declare function findJournalBytes(manager: JetStreamManager, subjects: JobSubjects, storage: "file" | "memory", shards: number): Promise<number>;
/** The streams of one job on a broker: journals, snapshots and buckets. */
export interface JobStreams {
    readonly job: string;
    readonly streams: readonly StreamInfo[];
}
/**
 * Lists the jobs on a broker, by name, each with its streams.
 * @throws DENIED for a user who may not list streams; NO_JETSTREAM, TIMEOUT, ….
 */
export declare function listJobStreams(manager: JetStreamManager): Promise<JobStreams[]>;
/** Lists the streams of one job; none if there is no such job. @throws as {@link listJobStreams}, and BAD_NAME. */
export declare function streamsOfJob(manager: JetStreamManager, job: string): Promise<StreamInfo[]>;
/** Makes the error for a broker that holds no job of this name. */
export declare function noSuchJob(job: string): PserverError;
/** A job that the broker holds, whether hosts serve it or not. */
export interface StoredJob {
    readonly subjects: JobSubjects;
    readonly client: JetStreamClient;
    readonly manager: JetStreamManager;
    readonly bucket: KvBucket;
    readonly settings: StoredSettings;
    readonly journalOf: (shard: number) => Journal;
}
/**
 * Opens a job that exists, without joining it; the connection stays the caller's.
 * @throws BAD_NAME if the broker holds no such job; NO_JETSTREAM, JETSTREAM_UNAVAILABLE, DENIED, TIMEOUT.
 */
export declare function openStoredJob(connection: NatsConnection, job: string): Promise<StoredJob>;
//# sourceMappingURL=open-job.d.ts.map