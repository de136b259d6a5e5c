import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type Fallback, type Fields, type Position, PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../fold/shard.ts";
import type { HostMemory } from "../host/host-memory.ts";
import { type JournalGap, ObservedEnd } from "../journal/journal-check.ts";
import { type Credit } from "../journal/journal-reader.ts";
import type { Manifest } from "../journal/manifest.ts";
import type { ReplicaDamage } from "../journal/replicas.ts";
import type { TapeStore } from "../journal/tape/tape-store.ts";
import type { FoldProgress } from "../journal/watermark.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";
import { type Coalescer, type FoldLoopEvents } from "./fold-loop.ts";
import { type LocatedJournal } from "./owned-journal.ts";
import { type AnsweredShard, PositionQueue, StepQueue, type WantedPosition } from "./pending-reads.ts";
import type { RecoveredShard } from "./recover-shard.ts";
import { type SnapshotContext, type SnapshotEvents, type SnapshotSettings } from "./shard-snapshots.ts";
import { type SubscriptionContext } from "./subscriptions.ts";
/** Resources that the shards of a worker share; the connections belong to the worker. */
export interface WorkerContext extends SubscriptionContext {
    /** Id of the host. */
    readonly host: string;
    readonly settings: OwnerSettings;
    readonly manager: JetStreamManager;
    readonly inboxPrefix: string;
    readonly journalConnection: NatsConnection;
    readonly coalescer: Coalescer;
    readonly archivers: SnapshotContext["worker"]["archivers"];
    readonly snapshotBudget: SnapshotContext["worker"]["snapshotBudget"];
    /** Memory of the host, for all its shards. */
    readonly memory: HostMemory;
}
/** Settings of owners. */
export interface OwnerSettings extends SnapshotSettings {
    readonly journalStorage: "file" | "memory";
    /** Lease time: the interval of checks whether a failed shard was recovered. */
    readonly leaseMs: number;
}
/** Resources of one shard of a worker: its streams and entries, and its lease. */
export interface ShardContext extends SnapshotContext {
    readonly worker: WorkerContext;
    readonly watermarks: WatermarkKeeper;
    /** The tape; undefined for a job without one. */
    readonly tape: TapeStore | undefined;
    /** The shard's part of the bytes that the tape may have. */
    readonly tapeBytesMax: number;
    readonly credit: Credit;
    /**
     * Returns the number of the present tenure of the shard's lease; undefined once the lease has run out on this
     * host's clock. Another host may have owned the shard between two tenures.
     */
    readonly tenure: () => bigint | undefined;
    readonly listener: OwnerListener;
}
/**
 * Troubles of a shard: it has failed; it does not fit into the host's memory; a snapshot, lines of the tape or the
 * watermark could not be stored; records could not be described, or have no lines on the tape; a trainer has seen a
 * later record than the journal holds; an archiver has stopped, and is no longer waited for; records were trimmed
 * before one had copied them; a broker's copy of the journal is damaged, and another one is used; a session was ended
 * because it sent far ahead of the fold.
 */
export type ShardTrouble = "failed" | "no-memory" | "snapshot-failed" | "tape-failed" | "tape-incomplete" | "mark-failed" | "loss-reported" | "archiver-stopped" | "archiver-behind" | "replica-damaged" | "flooded";
/** Reports of the owner of a shard to its worker. */
export interface OwnerListener {
    /** The shard has caught up and answers. */
    serving(): void;
    /**
     * Something is wrong. A shard that has failed is stopped; all others go on. Failures to write the watermark or the
     * tape are reported once until a write succeeds, and losses at most once a minute.
     */
    trouble(type: ShardTrouble, error: PserverError): void;
    /** The journal in memory is gone, and with it records that former owners have noted as folded. */
    fellBack(manifest: Pick<Manifest, "generation" | "fallbacks">): void;
    /** Somebody else has recovered the failed shard: it can be taken over again. */
    recovered(manifest: Manifest): void;
}
/** What a serving shard needs of the owner that has taken it over. */
export interface ServingOwner {
    /** Token of this take-over. */
    readonly token: string;
    /** Whether the lease is held, and no other host can have owned the shard since it was taken over. */
    readonly mayAnswer: boolean;
    /** Whether the host has memory for the blocks that were folded while catching up. */
    fits(shard: Shard): boolean;
    /** Called when the shard has caught up, just before it receives requests. */
    caughtUp(): void;
    /** Brokers whose copies of the journal are not what was folded before. */
    readonly differingBrokers: Iterable<string>;
    /** Writes the last record that was folded into the watermark. Failures are reported, not thrown. */
    mark(): Promise<void>;
    /** Stops the shard, which cannot go on. `copy`: what is wrong with a copy, if another one may be sound. */
    fail(error: PserverError, copy?: ReplicaDamage): void;
    /** Called when a copy of the journal is damaged, and another one is used. */
    replicaDamaged(damage: ReplicaDamage): void;
    /** Called when an asker has seen a record that the journal does not hold. */
    lossFound(error: PserverError, wanted: WantedPosition): void;
    /** Makes the reply to `status`. */
    status(): Fields;
}
/**
 * A shard that was recovered and is served: it folds, answers requests and makes snapshots. It makes its parts, in
 * the order in which they need each other, and receives the reports of all of them.
 */
export declare class ServingShard implements AnsweredShard, FoldLoopEvents, SnapshotEvents {
    #private;
    readonly number: number;
    readonly shard: Shard;
    readonly positions: PositionQueue;
    readonly steps: StepQueue;
    private constructor();
    /**
     * Prepares a recovered shard for serving: removes what the former owner has left and creates the journal of a new
     * shard. {@link start} follows.
     */
    static open(context: ShardContext, owner: ServingOwner, recovered: RecoveredShard): Promise<ServingShard>;
    /** Starts to fold. */
    start(): Promise<void>;
    /** Reads the journal again after the connection was lost. */
    reconnected(): Promise<void>;
    /** Whether it has caught up and answers. */
    get isServing(): boolean;
    /** Records that it has to fold before it answers, and how many of them it has folded. */
    get catchUp(): {
        readonly folded: number;
        readonly records: number;
    };
    get position(): Position;
    get fallbacks(): readonly Fallback[];
    /** The last record folded; undefined if the fold does not end with a record. */
    get foldProgress(): FoldProgress | undefined;
    status(): Fields;
    memory(): Fields;
    /** Makes its part of the reply to `status`. */
    statusEntries(): Fields;
    /** Requests that were not answered because their reply subject was outside the asker's inbox. */
    get refusedRequests(): number;
    snapshot(at: Position): Promise<Fields>;
    /**
     * Folds up to the present end of the journal, then nothing more, and makes a snapshot of that. Reads are still
     * answered.
     * @throws TIMEOUT while the fold has not come so far.
     */
    save(): Promise<void>;
    /** Has the broker confirm that no other host has taken the shard over. @throws NOT_OWNER if one has. */
    confirm(): Promise<void>;
    /** Stops folding and making snapshots. */
    stop(): void;
    /** Refuses pending requests, and further ones by {@link ShardSubscriptions.openFailed}. */
    fail(error: () => PserverError): void;
    /** Refuses pending requests and receives no further ones. */
    close(error: PserverError): void;
    locate(): Promise<LocatedJournal>;
    mayFold(): boolean;
    onSettled(settled: RecordAnswer, { payload, timeMs }: JournalRecord): void;
    onAdvanced(bytes: number): void;
    onGap(gap: JournalGap): Promise<void>;
    onReplicaDamaged(damage: ReplicaDamage): void;
    onFailure(error: PserverError, copy?: ReplicaDamage): void;
    onProgress(): void;
    onDeposed(error: PserverError): void;
    onArchiverBehind(error: PserverError): void;
    onSnapshotFailed(error: PserverError): void;
}
/**
 * Decides when the owner of a shard answers. Does no I/O.
 *
 * Until it has folded up to the journal end of its take-over it answers nothing: the senders of these records were
 * answered by former owners, or ask.
 */
export declare class OwnerCore {
    #private;
    readonly shard: Pick<Shard, "seq" | "steps">;
    readonly journalEnd: ObservedEnd;
    readonly positions: PositionQueue;
    readonly steps: StepQueue;
    constructor(parts: Pick<OwnerCore, "shard" | "journalEnd" | "positions" | "steps">);
    /** Whether it has caught up and answers. */
    get isServing(): boolean;
    /** Whether the fold has reached the journal end of the take-over. */
    get hasCaughtUp(): boolean;
    /** Starts to serve if the fold has reached the journal end of the take-over; returns whether it did so just now. */
    catchUp(): boolean;
    /** Answers pending requests after records have been folded or skipped. */
    advanced(position: Position): void;
    /** Refuses all pending requests. */
    refuseAll(error: PserverError): void;
}
//# sourceMappingURL=serving-shard.d.ts.map