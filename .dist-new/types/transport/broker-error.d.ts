import { type NatsConnection } from "@nats-io/transport-node";
import { type ErrorDetails, PserverError } from "../protocol/index.ts";
/** Returns the number of a JetStream API error; 0 for any other error. */
export declare function jetStreamErrorCode(error: unknown): number;
/** Returns whether a compare-and-swap was refused because of another write, done or under way. */
export declare function isWrongSequence(error: unknown): boolean;
/**
 * Turns an error of nats.js into an error of the project, whose message says with `action` what failed. "No
 * responders" becomes JETSTREAM_UNAVAILABLE: a cluster without a leader is as silent as a broker without
 * JetStream, which {@link isWithoutJetStream} recognizes.
 */
export declare function fromBrokerError(error: unknown, action: string, details?: ErrorDetails): PserverError;
/**
 * Does as {@link fromBrokerError} does, for storing a message in a stream: a full stream may store it later.
 */
export declare function fromStoreError(error: unknown, action: string, details?: ErrorDetails): PserverError;
/**
 * Returns whether the broker has no JetStream, by its greeting. False for a member of a cluster: other
 * members may have it.
 */
export declare function isWithoutJetStream({ info }: Pick<NatsConnection, "info">): boolean;
/**
 * Returns the error itself, or NO_JETSTREAM instead of JETSTREAM_UNAVAILABLE if the broker has no JetStream.
 */
export declare function orNoJetStream(error: PserverError, connection: Pick<NatsConnection, "info">): PserverError;
/**
 * Returns whether the error says that the broker's permissions forbid a subscription. Such a subscription
 * receives nothing.
 */
export declare function isRefusedSubscription(error: unknown): boolean;
/** Returns whether the error says that nobody listens to the subject of a request. */
export declare function isNoResponders(error: unknown): boolean;
/**
 * Parses JSON that a broker has sent; @throws BAD_MESSAGE, showing the beginning of the text, if it is not
 * JSON.
 */
export declare function parseJson(text: string, what: string): unknown;
//# sourceMappingURL=broker-error.d.ts.map