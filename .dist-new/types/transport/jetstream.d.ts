import { type JetStreamClient } from "@nats-io/jetstream";
import { type NatsConnection } from "@nats-io/transport-node";
/** JetStream's answer to a published message: where it is stored, or why it is not. */
export type PubAck = {
    readonly kind: "stored";
    readonly stream: string;
    readonly seq: number;
} | {
    readonly kind: "refused";
    readonly error: PubAckError;
};
/**
 * Why a message is not stored: `code` is a status as in HTTP, `errorCode` one of `JETSTREAM_ERRORS` or any
 * other; each is 0 if the broker does not name it.
 */
export interface PubAckError {
    readonly code: number;
    readonly errorCode: number;
    readonly description: string;
}
/**
 * Reads JetStream's answer: JSON `{stream, seq}` or `{error}`.
 * @throws BAD_MESSAGE if it is neither.
 */
export declare function parsePubAck(bytes: Uint8Array): PubAck;
/**
 * Checks JetStream's answer to a request to `subject`, which belongs to the API or a stream: nats.js itself
 * uses answers unchecked. An error that JetStream reports is a valid answer.
 * @throws BAD_MESSAGE if it is not a valid answer to such a request.
 */
export declare function checkJetStreamAnswer(subject: string, bytes: Uint8Array): void;
/**
 * Makes a JetStream client on this connection that checks answers before nats.js uses them: its methods end
 * in a result, the broker's refusal or BAD_MESSAGE, whatever a broker answers. A request may take
 * `timeoutMs`, 5 s by default.
 */
export declare function openJetStream(connection: NatsConnection, timeoutMs?: number): JetStreamClient;
/**
 * Stores messages in streams: large ones without copying them, and any number of small ones at a time with one
 * subscription for all answers. nats.js copies every message, and makes an error with a stack for each request
 * in case it fails, which is expensive for snapshots of a whole model and for the records of many parameters.
 */
export declare class StreamPublisher {
    #private;
    private constructor();
    /**
     * Makes a publisher, which receives acknowledgements on the connection from now on.
     * @param inboxPrefix where the connection may receive, without a final dot; by default where it receives the
     * answers to its requests.
     */
    static open(connection: NatsConnection, inboxPrefix?: string | undefined): StreamPublisher;
    /**
     * Stores a message and returns its sequence. The bytes must not be changed until then; after an error
     * they may still be in use.
     * @throws errors of nats.js: no stream, no answer in time, or JetStream's refusal; BAD_MESSAGE.
     */
    publish(subject: string, bytes: Uint8Array, timeoutMs: number): Promise<number>;
    /**
     * Publishes as {@link publish} does, on condition that the last message on the subject has this sequence,
     * or with 0 that there is none. The text is copied.
     */
    swap(subject: string, text: string, expectedSeq: number, timeoutMs: number): Promise<number>;
}
//# sourceMappingURL=jetstream.d.ts.map