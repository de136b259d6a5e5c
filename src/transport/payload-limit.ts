import type { NatsConnection } from "@nats-io/transport-node";
import { HEADER_BYTES_MAX } from "../protocol/limits.ts";

/** What the first broker of a connection said: nats.js forgets it while the connection is down. */
const FIRST_SAID = new WeakMap<NatsConnection, number>();

/** Remembers the limit of a connection that has just been opened. */
export function rememberPayloadLimit(connection: NatsConnection): void {
  const bytesMax = connection.info?.max_payload;
  if (bytesMax !== undefined) FIRST_SAID.set(connection, bytesMax);
}

/**
 * The largest message that the broker of a connection takes, in bytes; while the connection is down or closed, what it
 * took at first. Without limit if no broker has said: a message is not called too large for a limit that nobody knows.
 */
export function payloadBytesMaxOf(connection: NatsConnection): number {
  return connection.info?.max_payload ?? FIRST_SAID.get(connection) ?? Number.POSITIVE_INFINITY;
}

/** The most tensor bytes of a message that the broker takes, whatever the header before them. */
export function dataBytesMaxOf(connection: NatsConnection): number {
  return payloadBytesMaxOf(connection) - HEADER_BYTES_MAX;
}
