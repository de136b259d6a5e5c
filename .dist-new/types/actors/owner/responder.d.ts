import type { NatsConnection } from "@nats-io/transport-node";
import { type Allocate, type PserverError } from "../../protocol/index.ts";
import type { BufferPool } from "../../transport/buffers.ts";
import type { RecordAnswer } from "../fold/shard.ts";
/** Makes a reply, which then belongs to the responder; memory for large ones comes from `allocate`. */
export type MakeReply = (allocate: Allocate) => Uint8Array;
/** A message of a reply that takes several. */
export interface Chunk {
    readonly bytes: Uint8Array;
    /** Whether further chunks follow. */
    readonly more: boolean;
}
/** Makes the next chunk of a reply, as {@link MakeReply} does. */
type MakeChunk = (allocate: Allocate) => Chunk;
/** Receiver of a reply. */
export interface Asker {
    /** Key of the trainer or host that asks; a host's differs from any trainer's. */
    readonly from: string;
    readonly reply: string;
}
/**
 * Sends the replies of a worker, a limited number of bytes at a time: to each trainer in order, and to
 * trainers in turn, with equal shares of the bytes. A reply is made only when it can be sent, so a
 * waiting one takes no memory and carries the newest values.
 */
export declare class Responder {
    #private;
    /** `pool`: provides the memory of large replies. */
    constructor(connection: NatsConnection, pool: BufferPool);
    /** The largest message that the broker takes. */
    get payloadBytesMax(): number;
    /**
     * Sends what `make` returns, or the error that it throws, now or when the trainer's turn comes.
     * @returns whether `make` was or will be called; if not, the asker has got BUSY.
     */
    respond(asker: Asker, make: MakeReply): boolean;
    /**
     * Sends the chunks that `make` returns until one says that no more follow; an error that it throws ends the reply,
     * too. Other replies, those of this asker included, are sent in between.
     * @param end called once, when `make` will not be called again.
     * @returns whether `make` was or will be called; if not, the asker has got BUSY.
     */
    respondInChunks({ from, reply }: Asker, make: MakeChunk, end: () => void): boolean;
    /** Sends an error in place of a reply. */
    refuse(asker: Asker, error: PserverError): void;
}
/** Collects outcomes, and sends each session its own in one message. */
export declare class OutgoingOutcomes {
    #private;
    constructor(connection: NatsConnection, shard: number);
    /** Adds an outcome; ignores one without a reply subject, whose sender asks for it. */
    add({ reply, session, outcome }: RecordAnswer): void;
    /** Sends the collected outcomes. */
    flush(generation: number): void;
    /** Drops the collected outcomes: an owner without a valid lease must not answer. */
    clear(): void;
}
export {};
//# sourceMappingURL=responder.d.ts.map