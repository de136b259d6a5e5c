import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { type JobSubjects, type PserverError } from "../../protocol/index.ts";
import type { BlockName } from "../fold/block-actor.ts";
import type { FairServer } from "./fair-server.ts";
import type { Asker, Responder } from "./responder.ts";
/** Works on the requests to a shard; what its methods throw is sent to the asker. */
export interface RequestHandler {
    pull(data: Uint8Array, asker: Asker, block: BlockName): void;
    outcome(data: Uint8Array, asker: Asker): void;
    step(data: Uint8Array, asker: Asker): void;
    /** A read of many blocks of the shard. */
    read(data: Uint8Array, asker: Asker): void;
    /** A request to the shard's owner, such as `status`. */
    ownerVerb(data: Uint8Array, asker: Asker, verb: string): void;
}
/** Makes a handler that refuses all requests with the error that `error` returns. */
export declare function refusingHandler(error: () => PserverError): RequestHandler;
/** Resources that the subscriptions of a worker's shards share. */
export interface SubscriptionContext {
    readonly subjects: JobSubjects;
    /** Connection on which requests arrive and are answered. */
    readonly dataConnection: NatsConnection;
    readonly server: FairServer;
    readonly responder: Responder;
    readonly failedBlocks: FailedBlocks;
}
/** Receives the requests to one shard and its block actors, and passes them to a handler. */
export declare class ShardSubscriptions {
    #private;
    /** `mayAnswer`: whether this host is known to own the shard at this moment. */
    constructor(shard: number, context: SubscriptionContext, mayAnswer: () => boolean, handler: RequestHandler);
    /** Requests without an answer because their reply subject was outside the asker's inbox. */
    get refused(): number;
    /** Subscribes for the shard and these blocks. */
    open(blocks: Iterable<BlockName>): void;
    /**
     * Subscribes for a shard that has failed, and for all its blocks, also those that it does not know. `handler` gets
     * the requests from now on, also those that are waiting.
     */
    openFailed(handler?: RequestHandler): void;
    /** Subscribes for a new block actor. */
    blockAdded({ parameter, index }: BlockName): void;
    /** Unsubscribes for a block actor that is gone. */
    blockRemoved({ parameter, index }: BlockName): void;
    /** Ends all subscriptions; requests that are waiting are dropped. */
    close(): void;
}
/** Answers a pull of a block of one shard with the error of the shard. */
type Refuse = (message: Msg) => void;
/** Says where blocks lie. */
export interface BlockPlaces {
    /**
     * Returns the shard, of `shards`, of a parameter's block `index`; undefined if that is unknown. It does not throw.
     */
    shardOf(parameter: string, index: number, shards: number): Promise<number | undefined>;
}
/**
 * Receives the pulls of all blocks of the job while a shard of this worker has failed. Such a shard may not know its
 * blocks, because it has not folded their `init`; yet whoever pulls them is to get the error instead of waiting for
 * an owner. One subscription serves all failed shards.
 */
export declare class FailedBlocks {
    #private;
    /** `shards`: number of shards of the job. */
    constructor(connection: NatsConnection, subjects: JobSubjects, places: BlockPlaces, shards: number);
    /** Passes the pulls of the shard's blocks to `refuse`, until the returned function is called. */
    add(shard: number, refuse: Refuse): () => void;
}
export {};
//# sourceMappingURL=subscriptions.d.ts.map