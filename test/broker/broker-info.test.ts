// Proves what is made of a broker's greeting, and of anything else that answers or does not: a
// local TCP server plays each part.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { readBrokerGreeting } from "../../src/broker/broker-config.ts";

const HOST = "127.0.0.1";
const TIMEOUT_MS = 5_000;
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

describe("readBrokerInfo", () => {
  test("asks nobody if it is aborted already", async () => {
    const port = await serve((socket) =>
      socket.write('INFO {"version":"2.12.15","jetstream":true,"max_payload":8388608}\r\n'),
    );
    await expect(
      readBrokerGreeting(HOST, port, TIMEOUT_MS, AbortSignal.abort()),
    ).rejects.toMatchObject({ code: "ABORTED" });
  });

  test("reads version, JetStream and payload limit of a greeting that comes in pieces", async () => {
    const port = await serve((socket) => {
      socket.write('INFO {"version":"2.12.15","jets');
      setImmediate(() => socket.write('tream":true,"max_payload":8388608}\r\nPING\r\n'));
    });
    expect(await readBrokerGreeting(HOST, port, TIMEOUT_MS)).toEqual({
      version: "2.12.15",
      jetstream: true,
      maxPayloadBytes: 8_388_608,
    });
  });

  test("says that JetStream is off when the greeting does not name it", async () => {
    const port = await serve((socket) => socket.write('INFO {"version":"2.9.10"}\r\n'));
    expect(await readBrokerGreeting(HOST, port, TIMEOUT_MS)).toMatchObject({ jetstream: false });
  });

  test.each([
    ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n", "not a NATS broker"],
    ["no JSON", "INFO {version\r\n", "not a NATS broker"],
    ["no version", 'INFO {"jetstream":true}\r\n', "not a NATS broker"],
    ["no end of line", "x".repeat(100_000), "no end of line"],
  ])("refuses %s", async (_, greeting, message) => {
    const port = await serve((socket) => socket.write(greeting));
    await expect(readBrokerGreeting(HOST, port, TIMEOUT_MS)).rejects.toMatchObject({
      code: "NO_BROKER",
      message: expect.stringContaining(message),
    });
  });

  test("fails when the peer hangs up, is silent, or is not there", async () => {
    const hangsUp = await serve((socket) => socket.end());
    await expect(readBrokerGreeting(HOST, hangsUp, TIMEOUT_MS)).rejects.toThrow(
      "without a greeting",
    );
    const silent = await serve(() => {});
    await expect(readBrokerGreeting(HOST, silent, 50)).rejects.toThrow("no greeting within 50 ms");
    const gone = await serve(() => {});
    closers.pop()?.();
    await expect(readBrokerGreeting(HOST, gone, TIMEOUT_MS)).rejects.toThrow("ECONNREFUSED");
  });
});

/** Starts a server that does `greet` for each connection, and gives its port. */
async function serve(greet: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => sockets.delete(socket));
    greet(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  closers.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
