// Proves that every connection to a broker which is too old is refused, and left, and that a connection which is closed
// while it is made again leaves nothing behind.
import { once } from "node:events";
import { createServer, Socket } from "node:net";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import { PserverError } from "../../src/protocol/errors.ts";
import { connectForBulk } from "../../src/transport/bulk-transport.ts";
import { connectionOptions, openConnection } from "../../src/transport/connection.ts";
import { startFakeBroker } from "../support/fake-broker.ts";
import { freePorts } from "../support/free-ports.ts";
import { HANG_MS } from "../support/limits.ts";

test.each(["2.9.10", "2.11.1"])("no connection is made to nats-server %s", async (version) => {
  const broker = await startFakeBroker({ info: { version } });
  const url = `nats://127.0.0.1:${broker.port}`;
  const role = { name: "t", inboxPrefix: "_INBOX.t" };
  for (const attempt of [
    openConnection({ servers: [url], timeoutMs: HANG_MS }, role),
    connectForBulk({ servers: url }),
  ]) {
    const error: unknown = await attempt.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PserverError);
    expect(error).toMatchObject({ code: "BROKER_TOO_OLD", details: { received: version } });
  }
  expect(broker.dialled).toBe(2);
  await broker.close();
});

test("a broker may be started after what connects to it", async () => {
  const [port = 0] = await freePorts(1);
  const settings = { servers: [`nats://127.0.0.1:${port}`], timeoutMs: HANG_MS };
  const connecting = openConnection(settings, { name: "t", inboxPrefix: "_INBOX.t" });
  // Refused after that one has been.
  const refused = once(new Socket().connect(port, "127.0.0.1"), "connect");
  await expect(refused).rejects.toMatchObject({ code: "ECONNREFUSED" });
  const broker = await startFakeBroker({ port });
  onTestFinished(() => broker.close());
  await (await connecting).close();
});

test("a connection that is closed ends its attempt to reach a broker that hangs", async () => {
  const broker = await startFakeBroker();
  const connection = await connectForBulk({
    servers: `127.0.0.1:${broker.port}`,
    timeout: HANG_MS,
    reconnectTimeWait: 1,
    maxReconnectAttempts: -1,
  });
  await broker.close();
  const hanging = createServer().listen(broker.port, "127.0.0.1");
  const [socket] = (await once(hanging, "connection")) as [Socket];
  const ended = once(socket.on("error", () => undefined).resume(), "close");
  await connection.close();
  await ended;
  hanging.close();
});

test("an attempt to reach a broker that hangs is given up for the next one, however long its user has", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const broker = await startFakeBroker();
  const connection = await connectForBulk({
    servers: `127.0.0.1:${broker.port}`,
    timeout: HANG_MS,
    reconnectDelayHandler: () => 0,
    maxReconnectAttempts: -1,
  });
  await broker.close();
  const dialled: Socket[] = [];
  const hanging = createServer((socket) => {
    dialled.push(socket.on("error", () => undefined).resume());
  });
  hanging.listen(broker.port, "127.0.0.1");
  while (dialled.length < 3) await vi.advanceTimersByTimeAsync(100);
  expect(dialled[0]?.readableEnded).toBe(true);
  await connection.close();
  hanging.close();
});

test("a connection that was made by nats.js itself reconnects, too", async () => {
  const broker = await startFakeBroker();
  const [ours, theirs] = [
    await connectForBulk({ servers: `127.0.0.1:${broker.port}` }),
    await connect({ servers: `127.0.0.1:${broker.port}`, reconnectTimeWait: 1 }),
  ];
  await broker.close();
  const again = await startFakeBroker({ port: broker.port });
  for await (const { type } of theirs.status()) if (type === "reconnect") break;
  await theirs.flush();
  await Promise.all([ours.close(), theirs.close()]);
  await again.close();
});

test.each(["caFile", "certFile", "keyFile"] as const)(
  "a missing %s is named before anything else",
  (name) => {
    const settings = {
      servers: ["tls://127.0.0.1:1"],
      timeoutMs: HANG_MS,
      tls: { [name]: "/none.pem" },
    };
    expect(() => connectionOptions(settings, { name: "t", inboxPrefix: "_INBOX.t" })).toThrow(
      expect.objectContaining({
        code: "IO",
        message: expect.stringContaining("/none.pem: ENOENT"),
      }),
    );
  },
);
