// Proves that a connection leaves a broker that hangs for another one, though nothing closes it: with nothing to send,
// and with more to send than fits between them. The broker is a process that is stopped.
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { publishBulk } from "../../../src/transport/bulk-transport.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { HANG_MS } from "../../support/limits.ts";

const MIB = 1024 ** 2;

let brokers: readonly TestBroker[];

beforeAll(async () => {
  brokers = await Promise.all([startTestBroker(), startTestBroker()]);
});

afterAll(async () => {
  await Promise.all(brokers.map((broker) => broker.remove()));
});

function brokerOf(connection: NatsConnection): TestBroker | undefined {
  return brokers.find(({ port }) => connection.getServer().endsWith(`:${port}`));
}

async function reconnected(connection: NatsConnection): Promise<void> {
  for await (const { type } of connection.status()) if (type === "reconnect") return;
  throw new Error("the connection was closed");
}

test.each([
  ["nothing", 0],
  ["32 MiB", 32],
])("a broker hangs while %s is to be sent", async (_what, messages) => {
  const servers = brokers.map(({ url }) => url);
  const role = { name: "silent", inboxPrefix: "_INBOX_silent" };
  const connection = await openConnection({ servers, timeoutMs: 5_000 }, role);
  onTestFinished(() => connection.close());
  const hanging = brokerOf(connection);
  if (hanging === undefined) throw new Error("expected one of the brokers");
  const moved = reconnected(connection);
  await freeze(hanging.current.pid);
  onTestFinished(() => thaw(hanging.current.pid));
  for (let i = 0; i < messages; i++) publishBulk(connection, "bulk", new Uint8Array(MIB));
  const isInTime = await Promise.race([
    moved.then(() => true),
    delay(HANG_MS, false, { ref: false }),
  ]);
  expect(isInTime).toBe(true);
  expect(brokerOf(connection)).not.toBe(hanging);
  await connection.flush();
});
