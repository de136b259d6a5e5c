// Proves what is reported about a broker that did not start: the reason in its log and nothing else, and
// which process listens on an address that is taken (this process, on a port of its own).
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { failedStart, findListener } from "../../src/broker/start-broker.ts";

const PREFIX = "[7] 2026/11/22 16:58:25.897694";
const BANNER = [`${PREFIX} [INF]   Strict:          true`, `${PREFIX} [INF]   API Level:       3`];

async function listen(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test("only lines that say what failed are told, without process and time", async () => {
  const log = [
    ...BANNER,
    `${PREFIX} [FTL] Can't start JetStream: no access`,
    `${PREFIX} [ERR] sad`,
  ];
  expect(await failedStart("ended before it was ready", log)).toMatchObject({
    code: "NO_BROKER",
    message: "the broker ended before it was ready: Can't start JetStream: no access | sad",
    details: { log },
  });
});

test("what comes without a prefix counts as a reason", async () => {
  const log = [...BANNER, "nats-server: Parse error on line 3"];
  expect((await failedStart("ended", log)).message).toBe(
    "the broker ended: nats-server: Parse error on line 3",
  );
});

test("all lines are told where none says what failed", async () => {
  expect((await failedStart("was not ready in 50 ms", BANNER)).message).toBe(
    "the broker was not ready in 50 ms:   Strict:          true |   API Level:       3",
  );
  expect((await failedStart("was not ready in 50 ms", [])).message).toBe(
    "the broker was not ready in 50 ms",
  );
});

test.each(["127.0.0.1", "::1"])(
  "an address of %s that is taken is named with its process",
  async (host) => {
    const port = await listen(host);
    const address = host === "::1" ? `[::1]:${port}` : `${host}:${port}`;
    const line = `${PREFIX} [FTL] Error listening on port: ${address}, "listen tcp ${address}: bind: address already in use"`;
    const error = await failedStart("ended", [...BANNER, line]);
    expect(error).toMatchObject({ code: "ADDRESS_IN_USE", details: { port, pid: process.pid } });
    expect(error.message).toContain(`expected ${address} to be free`);
    expect(error.message).toContain(`process ${process.pid} (`);
  },
);

test("a process that cannot be found is called another one", async () => {
  const line = `listen tcp 127.0.0.1:1: bind: address already in use`;
  expect(await failedStart("ended", [line])).toMatchObject({
    message: "expected 127.0.0.1:1 to be free for the broker; another process listens there",
  });
});

test("findListener takes no other port for the one that is asked for", async () => {
  const port = await listen("127.0.0.1");
  expect(await findListener(port)).toMatchObject({ pid: process.pid });
  expect(await findListener(port === 65_535 ? 1 : 65_535 - port)).not.toMatchObject({
    pid: process.pid,
  });
});

test("findListener takes no connection for a listener", async () => {
  const socket = connect(await listen("127.0.0.1"), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  expect(await findListener(socket.localPort ?? 0)).toBeUndefined();
});
