import { type JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection } from "@nats-io/transport-node";
import type { Journal } from "../actors/journal/journal.ts";
import type { KvBucket } from "../actors/journal/kv-bucket.ts";
import type { PieceRef } from "../actors/journal/manifest.ts";
import { SnapshotReader } from "../actors/journal/snapshot-store.ts";
import type { Watermark } from "../actors/journal/watermark.ts";
import { type Fields, JobSubjects, type Message, type OwnerVerb, type Position, type Synchronization } from "../protocol/index.ts";
import { type ConnectionSettings } from "../transport/connection.ts";
import { type HistorySource, type JournalSpan, type KeptSnapshot, type ShardHistory, type StoredTapeMessage, type TapeStart, type TimedRecord } from "./source.ts";
/** Dependencies of {@link BrokerShard}. */
export interface BrokerShardDeps {
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly subjects: JobSubjects;
    readonly inboxPrefix: string;
    readonly journal: Journal;
    readonly snapshots: SnapshotReader;
    /** The job's bucket. */
    readonly bucket: KvBucket;
}
/** What the broker holds of one shard: its journal, perhaps an abandoned one, and its snapshots. */
export declare class BrokerShard implements ShardHistory {
    #private;
    readonly shard: number;
    constructor(deps: BrokerShardDeps);
    spans(): Promise<JournalSpan[]>;
    snapshots(): Promise<KeptSnapshot[]>;
    piece(ref: PieceRef): Promise<Uint8Array>;
    read(after: Position, toSeq: number, signal: AbortSignal): AsyncGenerator<readonly TimedRecord[], void, undefined>;
    watermark(): Promise<Watermark | undefined>;
    readTape(start: TapeStart, signal: AbortSignal): AsyncGenerator<StoredTapeMessage, void, undefined>;
    lastUpTo({ generation, firstSeq, lastSeq }: JournalSpan, timeMs: number): Promise<number>;
}
/** The history that the broker still holds: journals, abandoned ones too, and snapshots. */
export declare class BrokerHistory implements HistorySource {
    #private;
    readonly name = "broker";
    private constructor();
    /**
     * Connects as a host does, without joining the job; works without any host. The caller closes it. `role`: purpose
     * of the connection, as part of its name.
     * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if the broker holds no such
     * job.
     */
    static open(reach: ConnectionSettings, job: string, role?: "history" | "archive"): Promise<BrokerHistory>;
    get job(): string;
    get shards(): number;
    get synchronization(): Synchronization;
    /** The job's bucket. */
    get bucket(): KvBucket;
    shard(shard: number): BrokerShard;
    askOwner(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message>;
    close(): Promise<void>;
}
//# sourceMappingURL=broker-history.d.ts.map