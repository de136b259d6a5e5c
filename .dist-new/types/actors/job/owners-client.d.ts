import type { JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection } from "@nats-io/transport-node";
import { type Fields, type HostRecord, type JobSubjects, type Message, type OwnerVerb, type Position, type RememberedTrainers } from "../../protocol/index.ts";
import type { Journal } from "../journal/journal.ts";
/** A block by parameter, index and the epoch it must have. */
export type WantedBlock = readonly [parameter: string, index: number, epoch: number];
/** Reply of a shard's owner to a check. */
export interface CheckedBlocks {
    /** End of the shard's journal as the owner had folded it for the check. */
    readonly position: Position;
    readonly missing: readonly (readonly [parameter: string, index: number])[];
}
/** Requests to the owners of shards, about the broker's space, and about the hosts' memory. */
export interface Owners {
    /** Tells which of the blocks are missing once the shard's owner has folded up to `at`. */
    check(shard: number, want: {
        readonly blocks: readonly WantedBlock[];
        readonly at?: Position;
    }): Promise<CheckedBlocks>;
    /** The trainers that a shard remembers, with their sessions. */
    trainers(shard: number): Promise<RememberedTrainers>;
    /** Appends a host's record to a shard's journal. */
    append(shard: number, record: HostRecord): Promise<Position>;
    /**
     * Has a shard's owner store a snapshot of this position or later, unless there is one; returns the snapshot's
     * position.
     */
    snapshot(shard: number, at: Position): Promise<Fields>;
    /** Checks that the owners' hosts can hold so many more bytes of values, by shard. @throws NO_MEMORY */
    checkMemory(valueBytes: readonly number[]): Promise<void>;
    /** Checks that the broker can hold all journals and this state. @throws NO_SPACE */
    checkSpace(stateBytes: number): Promise<void>;
}
/** Dependencies of {@link OwnersClient}. */
export interface OwnersClientDeps {
    readonly connection: NatsConnection;
    readonly subjects: JobSubjects;
    /** Id of this host. */
    readonly host: string;
    readonly manager: JetStreamManager;
    readonly journalOf: (shard: number) => Journal;
}
/** Sends requests to the owners of shards, and appends host records to journals. */
export declare class OwnersClient implements Owners {
    #private;
    constructor(deps: OwnersClientDeps);
    /**
     * Sends a request to the owner of a shard and repeats it while no owner answers. `attemptMs` is the time
     * before a repeat, 2 s by default; requests that take an owner long need more.
     * @throws NO_OWNER if none answers in `graceMs`, 20 s by default; else the error in the reply.
     */
    ask(shard: number, verb: OwnerVerb, fields: Fields, graceMs?: number, attemptMs?: number): Promise<Message>;
    check(shard: number, want: {
        readonly blocks: readonly WantedBlock[];
        readonly at?: Position;
    }): Promise<CheckedBlocks>;
    trainers(shard: number): Promise<RememberedTrainers>;
    append(shard: number, record: HostRecord): Promise<Position>;
    /** Asks again for the snapshot that the first request started, finished or not, if a reply does not come. */
    snapshot(shard: number, { generation, seq }: Position): Promise<Fields>;
    checkSpace(stateBytes: number): Promise<void>;
    checkMemory(valueBytes: readonly number[]): Promise<void>;
}
//# sourceMappingURL=owners-client.d.ts.map