import { type Message } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { Position } from "../../protocol/messages/position.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type Deadline } from "../calls/calls.ts";
/** A message to the client's inbox. `data` is valid during the callback only. */
export interface InboxMessage {
    /** The last token of the message's subject. */
    readonly token: string;
    /** Whether the broker reports that nobody listens to the subject of the request. */
    readonly noResponders: boolean;
    readonly data: Uint8Array;
}
/** Events of the connection. */
export interface WireListener {
    /** The connection is lost: nats.js drops what is published from now on. */
    disconnected?(): void;
    /** The connection and its subscriptions are back. */
    reconnected?(): void;
    /** The broker refused what was published to this subject. */
    denied?(subject: string, error: PserverError): void;
}
/** The connection to the broker, as the parts of the client use it. */
export interface Wire {
    /** Subject prefix of this client; no other process receives below it. */
    readonly inbox: string;
    /** Whether the client is connected; what is published while it is not may be dropped. */
    readonly connected: boolean;
    /** The largest message the broker takes. */
    readonly payloadBytesMax: number;
    /**
     * Hands a message to the connection, which owns the bytes from now on.
     * @throws TOO_LARGE, or CLOSED once the connection is closed.
     */
    publish(subject: string, bytes: Uint8Array, reply: string): void;
    /**
     * Sends a PING; settles when it is answered. The broker handles what a connection sends in order: by then it has read
     * all that was published before, and all that it had sent has come. Rejects if the connection is lost.
     */
    flush(): Promise<void>;
    /** Bytes that the present connection has received, and given to the kernel to send; 0 while there is none. */
    readonly receivedBytes: number;
    readonly leftBytes: number;
    /** Subscribes to `<inbox>.<name>`; a final `.*` in the name matches any token. */
    receive(name: string, callback: (message: InboxMessage) => void): void;
    listen(listener: WireListener): void;
}
/** The broker's answer to a journal record. */
export type JournalAck = 
/** Stored at this position. */
{
    readonly kind: "stored";
    readonly shard: number;
    readonly position: Position;
}
/** Not stored; the same record can be stored later. */
 | {
    readonly kind: "later";
    readonly error: PserverError;
}
/** Not stored, and never will be. */
 | {
    readonly kind: "refused";
    readonly error: PserverError;
};
/**
 * Reads the broker's answer to a journal record.
 * @throws BAD_MESSAGE if it is none, or of a stream that is no journal of the job.
 */
export declare function parseJournalAck(message: InboxMessage, subjects: JobSubjects): JournalAck;
/** Returned by {@link Ask.read}: further messages of the answer follow. */
export declare const MORE: unique symbol;
/** Returned by {@link Ask.read}: messages of the answer are missing, so the request is sent again. */
export declare const ASK_AGAIN: unique symbol;
/** A request to hosts. */
export interface Ask<Answer> {
    readonly subject: string;
    /** Makes the message, each time it is sent; `reply` is the subject of its answer. */
    readonly body: (reply: string) => Uint8Array;
    /**
     * Reads a message of the answer, usually the only one, while `data` is valid: copy what is to be kept.
     * Returns the answer once it is complete.
     */
    readonly read: (message: Message) => Answer | typeof MORE | typeof ASK_AGAIN;
    readonly deadline: Deadline;
    /** Makes the error for the case that nobody listens to the subject. */
    readonly nobody: () => PserverError;
    /** Called for each error after which the request is sent again later. */
    readonly refused?: () => void;
    /**
     * How long errors that a retry can heal are retried; until the deadline by default. Without any answer
     * the request always waits until its deadline.
     */
    readonly retryMs?: number;
    /** Whether to ask again while no answer comes, true by default; needs an idempotent request. */
    readonly repeat?: boolean;
}
/** Notices when a count of bytes has risen by so many that it is progress. */
export declare class ByteProgress {
    #private;
    /** Takes the present count, which begins anew with each connection; returns whether it is progress. */
    take(bytes: number): boolean;
}
/**
 * Requests under way, each with a token. The first answer counts, whichever repeat of the request it is to.
 * The `request` of nats.js repeats nothing and does not survive reconnects.
 *
 * A request is repeated only when its answer is not on the way: the answer to a PING that was sent a second after the
 * broker had read the request comes after all that the broker had sent until then. Of an answer in several messages each
 * begins that time anew. So nothing is asked for twice because a link is slow.
 */
export declare class Requests {
    #private;
    private constructor();
    /**
     * Makes an empty table of requests, which receives answers on the wire from now on.
     * @param carriesValues whether answers and received bytes are progress of the calls that wait: not where calls ask
     * the same question until the answer is what they wait for.
     */
    static open(wire: Wire, carriesValues: boolean): Requests;
    /**
     * Sends a request and returns the answer. Repeats the request with growing delays while no answer is on the way,
     * nobody listens, or the host's error says that a retry can help.
     * @throws the error in the answer, what `read` throws, or at the deadline the last error seen.
     */
    ask<Answer>(ask: Ask<Answer>): Promise<Answer>;
    /** Sends a message without waiting for an answer; does nothing once the connection is closed. */
    tell(subject: string, body: Uint8Array): void;
}
//# sourceMappingURL=wire.d.ts.map