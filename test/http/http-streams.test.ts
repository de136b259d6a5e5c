// Proves that events are sent as they come, and that their receivers are bounded: their number, and what one that has
// gone or reads nothing can hold up; with real connections on loopback.
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { HttpServer, type HttpStream, type ServerEvent } from "../../src/http/http-server.ts";
import { HANG_MS } from "../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let server: HttpServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(open: HttpStream["open"]): Promise<number> {
  server = await HttpServer.start({
    address: { host: "127.0.0.1", port: 0 },
    routes: { live: { isProtected: true, answer: () => ({ open }) } },
    onError: (error) => expect.unreachable(error.message),
  });
  return Number(new URL(server.url).port);
}

async function listen(port: number): Promise<IncomingMessage> {
  const request = httpRequest({ host: "127.0.0.1", port, path: "/live", agent: false });
  request.on("error", () => undefined);
  onTestFinished(() => void request.destroy());
  request.end();
  const [response] = await once(request, "response");
  return response.setEncoding("utf8");
}

/** Yields these, and then waits for the signal. */
function events(list: readonly ServerEvent[], onEnd = (): void => undefined): HttpStream["open"] {
  return async function* (signal) {
    try {
      yield* list;
      if (!signal.aborted) await once(signal, "abort");
    } finally {
      onEnd();
    }
  };
}

test("events come as they are made, with what they carry as one line of JSON", async () => {
  const text = "two\nlines, and data: of their own";
  const port = await serve(
    events([
      { event: "a", data: { text } },
      { event: "b", data: 1 },
    ]),
  );
  const response = await listen(port);
  expect(response.headers["content-type"]).toBe("text/event-stream");
  let received = "";
  response.on("data", (part: string) => {
    received += part;
  });
  await vi.waitFor(() => expect(received.split("\n\n")).toHaveLength(3), WAIT);
  expect(received).toBe(`event: a\ndata: ${JSON.stringify({ text })}\n\nevent: b\ndata: 1\n\n`);
});

test("more receivers than a number get BUSY, until one has gone", async () => {
  const port = await serve(events([{ event: "a", data: 1 }]));
  const open = await Promise.all(Array.from({ length: 32 }, () => listen(port)));
  expect(open.map(({ statusCode }) => statusCode)).toEqual(new Array(32).fill(200));
  const refused = await listen(port);
  let body = "";
  for await (const part of refused) body += part;
  expect([refused.statusCode, JSON.parse(body).error.code]).toEqual([503, "BUSY"]);
  open[0]?.destroy();
  await vi.waitFor(async () => expect((await listen(port)).statusCode).toBe(200), WAIT);
});

test("a stream ends with its receiver, and with the server", async () => {
  let ended = 0;
  const port = await serve(events([{ event: "a", data: 1 }], () => (ended += 1)));
  const gone = await listen(port);
  gone.destroy();
  await vi.waitFor(() => expect(ended).toBe(1), WAIT);
  const stays = await listen(port);
  const closed = once(stays.resume(), "close");
  await server?.close();
  server = undefined;
  await closed;
  expect(ended).toBe(2);
});

test("a receiver that reads nothing is let go", async () => {
  let ended = false;
  const port = await serve(async function* (signal) {
    try {
      // More than the buffers of both sides take.
      while (!signal.aborted) yield { event: "a", data: "x".repeat(1_000_000) };
    } finally {
      ended = true;
    }
  });
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined).pause();
  socket.write("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await vi.waitFor(() => expect(ended).toBe(true), WAIT);
});
