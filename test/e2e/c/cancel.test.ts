// Proves that calls of the C library end when another thread cancels them, with ABORTED, though they wait
// for a broker, a host or other calls that never answer, under address, leak and undefined behaviour sanitizers.
import { createServer, type Server, type Socket } from "node:net";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { decodeMessage } from "../../../src/protocol/index.ts";
import type { RunningProgram } from "../../c/running-program.ts";
import { startProgram } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker } from "../../support/broker.ts";
import { type FakeHost, startFakeHost } from "../../support/fake-host.ts";
import { HANG_MS } from "../../support/limits.ts";

let library: BuiltLibrary;
let path: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  path = await library.program("cancel");
});

afterAll(() => library?.remove());

/** Waits until so many have connected to a server that says nothing. */
async function silentServer(): Promise<{ server: Server; url: string; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.on("error", () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no address");
  return { server, url: `nats://127.0.0.1:${address.port}`, sockets };
}

test("connecting to a broker that says nothing", async () => {
  const { url, sockets } = await silentServer();
  const program = startProgram(path, ["connect", url, "j"]);
  await vi.waitUntil(() => sockets.length > 0, { timeout: HANG_MS });
  program.say("now");
  await program.end();
});

/** A program whose calls wait for a parameter, of which the host says that it is not initialized. */
async function startGet(
  what: string,
): Promise<{ program: RunningProgram; host: FakeHost; connection: NatsConnection }> {
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j" });
  onTestFinished(() => host.close());
  const connection = await connect({ servers: broker.url });
  onTestFinished(() => connection.close());
  const program = startProgram(path, [what, broker.url, "j"]);
  await vi.waitUntil(() => (host.received.get("status") ?? 0) > 1, { timeout: HANG_MS });
  return { program, host, connection };
}

test("saving, and the host is told that nobody waits any more", async () => {
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j" });
  onTestFinished(() => host.close());
  host.mute = true;
  const connection = await connect({ servers: broker.url });
  onTestFinished(() => connection.close());
  const requests = connection.subscribe("ps.j.control.>")[Symbol.asyncIterator]();
  await connection.flush();
  const next = async (): Promise<{ verb: string | undefined; token: unknown }> => {
    const { value: message } = await requests.next();
    const { token } = decodeMessage(message?.data ?? new Uint8Array()).fields;
    return { verb: message?.subject.split(".").at(-1), token };
  };
  const program = startProgram(path, ["save", broker.url, "j"]);
  const save = await next();
  expect(save).toEqual({ verb: "save", token: expect.stringMatching(/^[0-9a-f]{32}$/) });
  program.say("now");
  expect(await next()).toEqual({ verb: "stop", token: save.token });
  await program.end();
});

test("getting what nobody initializes", async () => {
  const { program } = await startGet("get");
  program.say("now");
  await program.end();
});

test("closing, while another call waits for a host that has gone, and goes on late", async () => {
  const { program, host, connection } = await startGet("close");
  await host.deaf(true);
  for await (const _ of connection.subscribe("ps.j.lifecycle.*.status")) break;
  program.say("now");
  await program.end();
});
