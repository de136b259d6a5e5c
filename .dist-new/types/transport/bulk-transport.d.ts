import { type NatsConnection } from "@nats-io/transport-node";
/** Remembers the largest message of a connection that has just been opened. */
export declare function rememberPayloadLimit(connection: NatsConnection): void;
/**
 * Returns the largest message that the broker of a connection takes, in bytes; while the connection is down
 * or closed, what its first broker took. Infinity if no broker has said, so that no message is refused for an
 * unknown limit.
 */
export declare function payloadBytesMaxOf(connection: NatsConnection): number;
/**
 * Returns the most tensor bytes of a message that the broker takes, however long the header before them is.
 */
export declare function dataBytesMaxOf(connection: NatsConnection): number;
//# sourceMappingURL=bulk-transport.d.ts.map