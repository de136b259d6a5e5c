// Proves that sizes are checked and cut by what the broker takes even while its connection is down, when nats.js does
// not tell it, and that no message is called too large before a broker has said anything.
import type { NatsConnection, ServerInfo } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { HEADER_BYTES_MAX } from "../../src/protocol/limits.ts";
import {
  connectForBulk,
  dataBytesMaxOf,
  payloadBytesMaxOf,
  rememberPayloadLimit,
} from "../../src/transport/bulk-transport.ts";

import { startFakeBroker } from "../support/fake-broker.ts";

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

test("a connection that was opened has it from the beginning, and keeps it when its broker is gone", async () => {
  const broker = await startFakeBroker({ info: { max_payload: 4_321 } });
  const connection = await connectForBulk({ servers: `127.0.0.1:${broker.port}` });
  try {
    const statuses = connection.status()[Symbol.asyncIterator]();
    await broker.close();
    while ((await statuses.next()).value?.type !== "reconnecting");
    // Until the next broker greets, nats.js knows no limit.
    while (connection.info !== undefined) await new Promise(setImmediate);
    expect(payloadBytesMaxOf(connection)).toBe(4_321);
  } finally {
    await connection.close();
  }
  expect(dataBytesMaxOf(connection)).toBe(4_321 - HEADER_BYTES_MAX);
});

test("nothing is too large as long as no broker has said anything", () => {
  const { connection } = connectionWith(undefined);
  rememberPayloadLimit(connection);
  expect(payloadBytesMaxOf(connection)).toBe(Number.POSITIVE_INFINITY);
});
