// Proves what the HTTP server refuses, that no client can hold it up, and that its errors are typed JSON: with real
// connections on loopback, and routes that the tests hold open.
import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { parseHttpAddress } from "../../src/http/address.ts";
import { HttpServer, jsonAnswer, type Route } from "../../src/http/http-server.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { codeOf } from "../protocol/refusal.ts";
import { HANG_MS } from "../support/limits.ts";

let server: HttpServer | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close();
  server = undefined;
});

const open: Route = { isProtected: false, answer: () => jsonAnswer({ open: true }) };
const closed: Route = {
  isProtected: true,
  answer: ({ path, query }) => jsonAnswer({ path, query: query.toString() }),
};
const failing: Route = {
  isProtected: true,
  answer: () => {
    throw new PserverError("NO_BROKER", "the broker is away");
  },
};

interface Options {
  readonly token?: string;
  readonly routes?: Readonly<Record<string, Route>>;
}

async function start({ token, routes = {} }: Options = {}): Promise<number> {
  server = await HttpServer.start({
    address: { host: "127.0.0.1", port: 0 },
    routes: { open, closed, failing, ...routes },
    onError: (error) => expect.unreachable(error.message),
    ...(token !== undefined && { token }),
  });
  return Number(new URL(server.url).port);
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function ask(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  const request = httpRequest({ host: "127.0.0.1", port, path, headers, method, agent: false });
  request.end();
  const [response] = await once(request, "response");
  let body = "";
  for await (const part of response.setEncoding("utf8")) body += part;
  return { status: response.statusCode, headers: response.headers, body };
}

function codeIn({ body }: Answer): unknown {
  return JSON.parse(body).error.code;
}

test("a route gets the parts of its path, decoded, and the query", async () => {
  const port = await start();
  const answer = await ask(port, "/closed/a%20b/?x=1&y=%26");
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body)).toEqual({ path: ["closed", "a b"], query: "x=1&y=%26" });
});

test("every answer tells browsers to keep, frame and guess nothing", async () => {
  const port = await start();
  for (const path of ["/open", "/nothing"]) {
    const { headers } = await ask(port, path);
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
    });
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  }
});

test.each(["/", "/nothing", "/toString", "//evil/open", "/%", "/open%2f"])(
  "nothing is served at %s",
  async (path) => {
    const answer = await ask(await start(), path);
    expect(answer.status).toBe(404);
    expect(codeIn(answer)).toBe("BAD_PATH");
  },
);

test("only GET and HEAD are served, and HEAD without a body", async () => {
  const port = await start();
  for (const method of ["POST", "PUT", "DELETE"]) {
    const answer = await ask(port, "/open", {}, method);
    expect(answer.status).toBe(405);
    expect(codeIn(answer)).toBe("UNSUPPORTED");
    expect(answer.headers.allow).toBe("GET, HEAD");
  }
  const head = await ask(port, "/open", {}, "HEAD");
  expect([head.status, head.body]).toEqual([200, ""]);
});

test("an error of a route is its status and the error as commands print it", async () => {
  const answer = await ask(await start(), "/failing");
  expect(answer.status).toBe(503);
  expect(JSON.parse(answer.body)).toEqual({
    error: { code: "NO_BROKER", message: "the broker is away", details: {} },
  });
});

test.each(["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1"])(
  "a request for the host %s is refused on loopback",
  async (host) => {
    const answer = await ask(await start(), "/open", { Host: host });
    expect(answer.status).toBe(403);
    expect(codeIn(answer)).toBe("DENIED");
  },
);

test.each(["localhost", "LOCALHOST:99", "127.0.0.1:1", "127.9.9.9", "[::1]:4"])(
  "a request for the host %s is served on loopback",
  async (host) => {
    expect((await ask(await start(), "/open", { Host: host })).status).toBe(200);
  },
);

test("a protected route asks for the token, and for no other", async () => {
  const port = await start({ token: "secret-token" });
  for (const authorization of [undefined, "Bearer other", "Basic secret-token", "Bearer "]) {
    const headers = authorization === undefined ? {} : { Authorization: authorization };
    const answer = await ask(port, "/closed", headers);
    expect(answer.status).toBe(401);
    expect(codeIn(answer)).toBe("DENIED");
    expect(answer.headers["www-authenticate"]).toBe("Bearer");
    expect(answer.body).not.toContain("secret-token");
  }
  expect((await ask(port, "/closed", { Authorization: "Bearer secret-token" })).status).toBe(200);
  expect((await ask(port, "/open")).status).toBe(200);
});

test("an address that others reach is refused without a token, with the reason", async () => {
  const starting = HttpServer.start({
    address: parseHttpAddress("0.0.0.0:0"),
    routes: {},
    onError: () => undefined,
  });
  await expect(starting).rejects.toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("expected --http-token with it"),
  });
});

test("a taken port is refused by name, unless any other one will do", async () => {
  const port = await start();
  const options = {
    address: { host: "127.0.0.1", port },
    routes: { open },
    onError: () => undefined,
  };
  await expect(HttpServer.start(options)).rejects.toMatchObject({
    code: "ADDRESS_IN_USE",
    message: `--http: another process listens on 127.0.0.1:${port}`,
  });
  const other = await HttpServer.start({ ...options, takesOtherPort: true });
  expect((await ask(Number(new URL(other.url).port), "/open")).status).toBe(200);
  await other.close();
});

test("requests beyond a number are told to come again, and health is answered all the same", async () => {
  let finish: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let waiting = 0;
  const slow: Route = {
    isProtected: true,
    answer: async () => {
      waiting += 1;
      await held;
      return jsonAnswer({});
    },
  };
  const port = await start({ routes: { slow } });
  const asked = Array.from({ length: 16 }, () => ask(port, "/slow"));
  await expect.poll(() => waiting, { timeout: HANG_MS }).toBe(16);
  const refused = await ask(port, "/slow");
  expect([refused.status, codeIn(refused)]).toEqual([503, "BUSY"]);
  expect((await ask(port, "/open")).status).toBe(200);
  finish();
  for (const each of asked) expect((await each).status).toBe(200);
});

test("connections beyond a number are closed, and those before stay", async () => {
  const port = await start();
  for (let i = 0; i < 64; i++) {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    await once(socket, "connect");
  }
  const extra = connect(port, "127.0.0.1");
  sockets.push(extra);
  await once(extra, "close");
  const [first] = sockets;
  first?.write("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [data] = await once(first as Socket, "data");
  expect(String(data)).toMatch(/^HTTP\/1.1 200 /);
});

test("what is no HTTP ends its connection and nothing else", async () => {
  const port = await start();
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.write("\0\x01 nonsense\r\n\r\n");
  await once(socket.resume(), "close");
  expect((await ask(port, "/open")).status).toBe(200);
});

test("closing aborts what is asked for, and waits for no client", async () => {
  const reasons: unknown[] = [];
  let entered: () => void = () => undefined;
  const isAsked = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const slow: Route = {
    isProtected: false,
    answer: ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason);
          reject(signal.reason);
        });
        entered();
      }),
  };
  const port = await start({ routes: { slow } });
  const idle = connect(port, "127.0.0.1");
  sockets.push(idle);
  await once(idle, "connect");
  const asking = ask(port, "/slow");
  await isAsked;
  await server?.close();
  server = undefined;
  expect(codeIn(await asking)).toBe("CLOSED");
  expect(reasons).toMatchObject([{ code: "CLOSED" }]);
});

test.each([
  ["9100", { host: "127.0.0.1", port: 9100 }],
  ["0.0.0.0:1", { host: "0.0.0.0", port: 1 }],
  ["[::1]:65535", { host: "::1", port: 65_535 }],
  ["monitor.example:80", { host: "monitor.example", port: 80 }],
])("the address %s", (text, address) => {
  expect(parseHttpAddress(text)).toEqual(address);
});

test.each(["", ":80", "65536", "a:b", "::1:80", "[::1]", "[zz]:80", "http://a:80", "a b:80"])(
  "%j is no address",
  (text) => {
    expect(codeOf(() => parseHttpAddress(text))).toBe("BAD_VALUE");
  },
);

const changing: Route = {
  isProtected: true,
  takesChanges: true,
  answer: ({ change }) => jsonAnswer({ change: change ?? "none" }),
};

const BEARER = { Authorization: "Bearer secret" };
const JSON_BODY = { "Content-Type": "application/json" };

async function post(
  port: number,
  headers: Record<string, string>,
  body = '{"a":1}',
): Promise<Answer> {
  const options = { host: "127.0.0.1", port, path: "/changing", method: "POST", agent: false };
  const request = httpRequest({ ...options, headers });
  request.end(body);
  const [response] = await once(request, "response");
  let text = "";
  for await (const part of response.setEncoding("utf8")) text += part;
  return { status: response.statusCode, headers: response.headers, body: text };
}

test("a change needs a server with a token, and the token", async () => {
  const without = await post(await start({ routes: { changing } }), { ...BEARER, ...JSON_BODY });
  expect([without.status, codeIn(without)]).toEqual([403, "DENIED"]);
  await server?.close();
  const port = await start({ token: "secret", routes: { changing } });
  const unknown = await post(port, JSON_BODY);
  expect([unknown.status, codeIn(unknown)]).toEqual([401, "DENIED"]);
  const known = await post(port, { ...BEARER, ...JSON_BODY });
  expect([known.status, known.body]).toEqual([200, '{"change":{"a":1}}\n']);
});

test.each([
  ["a page of another origin", { Origin: "http://evil.example" }, 403, "DENIED"],
  ["a page without an origin", { Origin: "null" }, 403, "DENIED"],
  ["a form", { "Content-Type": "text/plain" }, 400, "BAD_VALUE"],
  ["another name of this machine", { Host: "evil.example" }, 403, "DENIED"],
])("a change is not taken from %s", async (_who, headers, status, code) => {
  let changes = 0;
  const counting: Route = {
    ...changing,
    answer: () => jsonAnswer({ count: ++changes }),
  };
  const port = await start({ token: "secret", routes: { changing: counting } });
  const answer = await post(port, { ...BEARER, ...JSON_BODY, ...headers });
  expect([answer.status, codeIn(answer), changes]).toEqual([status, code, 0]);
});

test("a change is taken from the server's own page", async () => {
  const port = await start({ token: "secret", routes: { changing } });
  const own = { Origin: `http://127.0.0.1:${port}`, Host: `127.0.0.1:${port}` };
  expect((await post(port, { ...BEARER, ...JSON_BODY, ...own })).status).toBe(200);
});

test.each([
  ["no JSON", "{", 400, "BAD_VALUE"],
  ["too long", JSON.stringify("x".repeat(16_384)), 413, "TOO_LARGE"],
])("a change that is %s is refused", async (_what, body, status, code) => {
  const port = await start({ token: "secret", routes: { changing } });
  const answer = await post(port, { ...BEARER, ...JSON_BODY }, body);
  expect([answer.status, codeIn(answer)]).toEqual([status, code]);
});

test("a browser that asks before it sends to another origin is refused", async () => {
  const port = await start({ token: "secret", routes: { changing } });
  const answer = await ask(port, "/changing", { Origin: "http://evil.example" }, "OPTIONS");
  expect([answer.status, answer.headers.allow]).toEqual([405, "GET, HEAD, POST"]);
  expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
});
