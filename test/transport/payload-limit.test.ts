// Proves that sizes are checked and cut by what the broker takes even while its connection is down, when nats.js does
// not tell it, and that no message is called too large before a broker has said anything.
import type { NatsConnection, ServerInfo } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { payloadBytesMaxOf, rememberPayloadLimit } from "../../src/transport/payload-limit.ts";

function connectionWith(bytesMax: number | undefined): {
  connection: NatsConnection;
  say: (bytesMax: number | undefined) => void;
} {
  const state: { info?: Pick<ServerInfo, "max_payload"> | undefined } = {};
  const say = (said: number | undefined): void => {
    state.info = said === undefined ? undefined : { max_payload: said };
  };
  say(bytesMax);
  return { connection: state as unknown as NatsConnection, say };
}

test("the broker that is connected says how large a message may be", () => {
  const { connection, say } = connectionWith(1_000);
  rememberPayloadLimit(connection);
  expect(payloadBytesMaxOf(connection)).toBe(1_000);
  say(500);
  expect(payloadBytesMaxOf(connection)).toBe(500);
});

test("while the connection is down, what the broker said holds on", () => {
  const { connection, say } = connectionWith(1_000);
  rememberPayloadLimit(connection);
  say(undefined);
  expect(payloadBytesMaxOf(connection)).toBe(1_000);
});

test("nothing is too large as long as no broker has said anything", () => {
  const { connection } = connectionWith(undefined);
  rememberPayloadLimit(connection);
  expect(payloadBytesMaxOf(connection)).toBe(Number.POSITIVE_INFINITY);
});
