import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import {
  type ErrorCode,
  ensureError,
  mismatch,
  PserverError,
  visible,
} from "../protocol/errors.ts";
import { errnoCode, fileError } from "../system/file-errors.ts";
import { type HttpAddress, isLoopback, urlOf } from "./address.ts";

/** Connections at one time; further ones are closed at once. */
const CONNECTIONS_MAX = 64;

/** Requests that are being worked on at one time; further ones get BUSY. */
const REQUESTS_MAX = 16;

/** Longest request line and headers together. */
const HEADER_BYTES_MAX = 16_384;

/** Longest body of a request. */
const BODY_BYTES_MAX = 16_384;

/** How long a client may take to send a request, and how long its connection may be idle. */
const REQUEST_MS = 10_000;
const IDLE_MS = 15_000;

/** How long a client may take to receive a whole answer. */
const ANSWER_MS = 60_000;

/** How long open requests may take once the server is being closed. */
const CLOSE_MS = 1_000;

/** Streams of events at one time; further ones get BUSY. */
const STREAMS_MAX = 32;

/** How often a stream shows that it is alive, and how often in a row it may find that what it sent has not gone. */
const HEARTBEAT_MS = 5_000;
const STALLS_MAX = 2;

/** Sent with every answer: nothing of it is to be kept, framed, guessed at or used by pages of other origins. */
const SECURITY_HEADERS = {
  "Cache-Control": "no-store",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
} as const;

/** A request as a route gets it. */
export interface HttpRequest {
  /** The JSON of a request for a change, which came as a POST; undefined for one that only asks. */
  readonly change: unknown;
  /** The parts of the path, decoded: `["api", "jobs"]`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  /** Aborted when the client has gone, or the server is being closed. */
  readonly signal: AbortSignal;
}

/** An answer of a route. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** What the document may load and do, as a content security policy; nothing by default. */
  readonly policy?: string;
  /** Methods that would have been allowed, in an answer about one that is not. */
  readonly allow?: string;
}

/** Server-sent events, as an answer of a route. */
export interface HttpStream {
  /** Opens the events, which end when the signal is aborted: the client has gone, or is too slow. */
  readonly open: (signal: AbortSignal) => AsyncIterable<ServerEvent>;
}

/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  /** Sent as JSON. */
  readonly data: unknown;
}

/** Answers the requests whose paths begin with some name. */
export interface Route<Answer = HttpAnswer> {
  /** Whether requests need the token, if the server has one. */
  readonly isProtected: boolean;
  /** Whether it takes requests for changes, which are only for servers with a token. False by default. */
  readonly takesChanges?: boolean;
  /** Answers a request. What it throws is answered as an error in JSON. */
  answer(request: HttpRequest): Answer | Promise<Answer>;
}

/** Options of {@link HttpServer.start}. */
export interface HttpServerOptions {
  readonly address: HttpAddress;
  /** Whether any free port is taken if another process listens on the one of the address. False by default. */
  readonly takesOtherPort?: boolean;
  /** What protected routes ask for as `Authorization: Bearer`; required unless the address is loopback. */
  readonly token?: string;
  /** By the first name of the path: `metrics` for `/metrics`. */
  readonly routes: Readonly<Record<string, Route<HttpAnswer | HttpStream>>>;
  /** Called when a connection could not be taken, as where the process may open no more files. */
  readonly onError: (error: PserverError) => void;
}

/**
 * Serves HTTP for whoever watches this process. Connections, requests and times are bounded, so that no client can
 * take memory or keep others out for long; an error of a request ends that request only.
 */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;
  readonly #closing = new AbortController();
  #requests = 0;
  #streams = 0;
  #address: HttpAddress;

  private constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#address = options.address;
    this.#server = createServer(
      {
        connectionsCheckingInterval: 1_000,
        headersTimeout: REQUEST_MS,
        requestTimeout: REQUEST_MS,
        keepAliveTimeout: IDLE_MS,
        maxHeaderSize: HEADER_BYTES_MAX,
      },
      (request, response) => void this.#receive(request, response),
    );
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.timeout = IDLE_MS;
  }

  /**
   * Starts to listen.
   * @throws BAD_VALUE for an address that others can reach without a token; ADDRESS_IN_USE; IO if the system refuses
   * the address.
   */
  static async start(options: HttpServerOptions): Promise<HttpServer> {
    const { address, token, takesOtherPort = false } = options;
    if (token === undefined && !isLoopback(address.host)) {
      const text =
        `--http: other machines can reach ${address.host}, so requests need a token: ` +
        "expected --http-token with it; received none";
      throw new PserverError("BAD_VALUE", text, { expected: "--http-token", received: "none" });
    }
    const server = new HttpServer(options);
    try {
      await server.#listen(address);
    } catch (error) {
      if (!takesOtherPort || ensureError(error).code !== "ADDRESS_IN_USE") throw error;
      await server.#listen({ ...address, port: 0 });
    }
    return server;
  }

  /** The address at which it listens, as a URL. */
  get url(): string {
    return urlOf(this.#address);
  }

  /** Stops listening, ends what is being answered, and closes all connections. */
  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#closing.abort(new PserverError("CLOSED", "the process ends"));
    const timer = setTimeout(() => this.#server.closeAllConnections(), CLOSE_MS);
    this.#server.closeIdleConnections();
    await closed;
    clearTimeout(timer);
  }

  async #listen(address: HttpAddress): Promise<void> {
    try {
      await once(this.#server.listen({ host: address.host, port: address.port }), "listening");
    } catch (error) {
      throw listenError(address, error);
    }
    // From now on an error is about one connection; without a listener it would end the process.
    this.#server.removeAllListeners("error").on("error", (error) => {
      this.#options.onError(fileError("take a connection at", this.url, error));
    });
    const { port } = this.#server.address() as AddressInfo;
    this.#address = { host: address.host, port };
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that goes away, or sends what is no HTTP, concerns nobody else.
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    if (request.method !== "POST") request.resume();
    const gone = new AbortController();
    response.once("close", () => gone.abort(new PserverError("ABORTED", "the client has gone")));
    const deadline = setTimeout(() => response.destroy(), ANSWER_MS);
    response.once("close", () => clearTimeout(deadline));
    this.#requests += 1;
    try {
      const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
      const answer = await this.#answer(request, signal);
      if (!("open" in answer)) send(request, response, answer);
      else {
        clearTimeout(deadline);
        await this.#stream(response, answer, gone);
      }
    } catch (error) {
      send(request, response, errorAnswer(ensureError(error)));
    } finally {
      this.#requests -= 1;
      // What nobody has read of it must not keep the connection from being used again.
      request.resume();
    }
  }

  /** Sends events until the client has gone, takes none for too long, or the server is being closed. */
  async #stream(
    response: ServerResponse,
    { open }: HttpStream,
    gone: AbortController,
  ): Promise<void> {
    if (this.#streams === STREAMS_MAX) {
      throw new PserverError(
        "BUSY",
        `expected at most ${STREAMS_MAX} streams of events at one time`,
      );
    }
    this.#streams += 1;
    // A stream is no request that is being worked on.
    this.#requests -= 1;
    let stalls = 0;
    const heartbeat = setInterval(() => {
      stalls = response.writableLength > 0 ? stalls + 1 : 0;
      if (stalls === STALLS_MAX) response.destroy();
      else response.write(": alive\n\n");
    }, HEARTBEAT_MS);
    try {
      response.writeHead(200, { ...SECURITY_HEADERS, "Content-Type": "text/event-stream" });
      response.flushHeaders();
      const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
      for await (const { event, data } of open(signal)) {
        const isTaken = response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
        if (!isTaken) await once(response, "drain", { signal });
      }
      response.end();
    } catch {
      // The headers have gone: a client learns of the end by the end of its connection.
      response.destroy();
    } finally {
      clearInterval(heartbeat);
      this.#streams -= 1;
      this.#requests += 1;
    }
  }

  async #answer(request: IncomingMessage, signal: AbortSignal): Promise<HttpAnswer | HttpStream> {
    this.#checkHost(request.headers.host);
    const { pathname, searchParams: query } = parseTarget(request.url ?? "");
    const path = pathname
      .split("/")
      .filter((name) => name !== "")
      .map(decodeName);
    const [first = ""] = path;
    const { routes } = this.#options;
    const route = Object.hasOwn(routes, first) ? routes[first] : undefined;
    if (route === undefined) throw notFound(pathname);
    const isChange = request.method === "POST" && route.takesChanges === true;
    if (!isChange) {
      checkAsks(request.method, route.takesChanges === true ? "GET, HEAD, POST" : "GET, HEAD");
    }
    if (route.isProtected) {
      this.#checkToken(request.headers.authorization);
      if (this.#requests > REQUESTS_MAX) {
        throw new PserverError("BUSY", `expected at most ${REQUESTS_MAX} requests at one time`);
      }
    }
    const change = isChange ? await this.#readChange(request) : undefined;
    return await route.answer({ path, query, change, accept: request.headers.accept, signal });
  }

  /**
   * Reads what is to be changed. A page of another origin cannot ask for that: it does not know the token, and a browser
   * sends neither the header with it nor JSON to other origins without having asked before, which is refused.
   * @throws DENIED from a server without a token, or for a page of another origin; BAD_VALUE, TOO_LARGE.
   */
  async #readChange(request: IncomingMessage): Promise<unknown> {
    if (this.#options.token === undefined) {
      const text =
        "this server only shows: it changes something for requests with a token, which --http-token gives it";
      throw new HttpError(403, "DENIED", text);
    }
    checkOrigin(request.headers);
    const type = request.headers["content-type"] ?? "none";
    if (!/^application\/json *(?:;|$)/i.test(type)) {
      throw mismatch("BAD_VALUE", "Content-Type", "application/json", visible(type));
    }
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of request as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > BODY_BYTES_MAX) {
        const text = `the body: expected at most ${BODY_BYTES_MAX} bytes; received more`;
        throw new HttpError(413, "TOO_LARGE", text);
      }
      parts.push(part);
    }
    try {
      return JSON.parse(Buffer.concat(parts).toString("utf8"));
    } catch {
      throw mismatch("BAD_VALUE", "the body", "JSON", "something else");
    }
  }

  /**
   * Refuses requests to a server on loopback under another name: a page of another origin may have a name of its own
   * that means this machine, and would read the answers.
   */
  #checkHost(header: string | undefined): void {
    if (!isLoopback(this.#address.host)) return;
    const name = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]+))(?::\d+)?$/.exec(header ?? "")?.groups;
    const host = name?.["v6"] ?? name?.["host"];
    if (host !== undefined && isLoopback(host.toLowerCase())) return;
    const received = visible(header ?? "none");
    const text = `Host: expected a name of this machine such as localhost; received ${received}`;
    throw new HttpError(403, "DENIED", text);
  }

  #checkToken(header: string | undefined): void {
    const { token } = this.#options;
    if (token === undefined) return;
    const received = /^Bearer +(?<token>\S+)$/i.exec(header ?? "")?.groups?.["token"];
    if (received !== undefined && isEqual(received, token)) return;
    const what = received === undefined ? "none" : "another one";
    const text = `Authorization: expected Bearer and the token; received ${what}`;
    throw new HttpError(401, "DENIED", text);
  }
}

/** An error that is answered under a status of its own. */
class HttpError extends PserverError {
  readonly status: number;
  /** Methods that would have been allowed. */
  readonly allow: string | undefined;

  constructor(status: number, code: ErrorCode, message: string, allow?: string) {
    super(code, message);
    this.status = status;
    this.allow = allow;
  }
}

/** @throws UNSUPPORTED unless a method only asks; `allow`: those that would be allowed. */
function checkAsks(method: string | undefined, allow: string): void {
  if (method === "GET" || method === "HEAD") return;
  const text = `expected ${allow.replace(/, (\w+)$/, " or $1")}; received ${visible(String(method))}`;
  throw new HttpError(405, "UNSUPPORTED", text, allow);
}

/** @throws DENIED if a browser says that the page which asks comes from elsewhere. */
function checkOrigin({ origin, host }: IncomingHttpHeaders): void {
  if (origin === undefined) return;
  if (URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()) return;
  const text = `Origin: expected the address of this server; received ${visible(origin)}`;
  throw new HttpError(403, "DENIED", text);
}

/** Makes the error for a path that leads to nothing. */
export function notFound(path: string): PserverError {
  return new HttpError(404, "BAD_PATH", `nothing is served at ${visible(path)}`);
}

/** Makes the error for what a path names, but does not exist. */
export function missing(code: ErrorCode, message: string): PserverError {
  return new HttpError(404, code, message);
}

/** Makes an answer of JSON. */
export function jsonAnswer(value: unknown, status = 200): HttpAnswer {
  return {
    status,
    contentType: "application/json; charset=utf-8",
    body: `${JSON.stringify(value)}\n`,
  };
}

/** Makes the answer that carries an error, in the form in which commands print it. */
function errorAnswer(error: PserverError): HttpAnswer {
  const answer = jsonAnswer({ error: error.toWire() }, statusOf(error));
  const allow = error instanceof HttpError ? error.allow : undefined;
  return allow === undefined ? answer : { ...answer, allow };
}

/** Codes of what a client has sent wrongly. */
const CLIENT_ERRORS: readonly ErrorCode[] = ["BAD_VALUE", "BAD_NAME", "BAD_PATH"];

function statusOf(error: PserverError): number {
  if (error instanceof HttpError) return error.status;
  if (CLIENT_ERRORS.includes(error.code)) return 400;
  return error.retryable ? 503 : 500;
}

function send(request: IncomingMessage, response: ServerResponse, answer: HttpAnswer): void {
  if (response.destroyed) return;
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    ...SECURITY_HEADERS,
    ...(answer.policy !== undefined && { "Content-Security-Policy": answer.policy }),
    "Content-Type": answer.contentType,
    "Content-Length": body.length,
    ...(answer.status === 401 && { "WWW-Authenticate": "Bearer" }),
    ...(answer.allow !== undefined && { Allow: answer.allow }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

function parseTarget(target: string): URL {
  // A path that begins with two slashes would otherwise name a host.
  if (target.startsWith("/") && URL.canParse(`http://server${target}`)) {
    return new URL(`http://server${target}`);
  }
  throw notFound(target);
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    throw notFound(name);
  }
}

/** Compares texts in a time that does not depend on where they differ. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function listenError({ host, port }: HttpAddress, cause: unknown): PserverError {
  if (errnoCode(cause) !== "EADDRINUSE") return fileError("listen on", `${host}:${port}`, cause);
  const text = `--http: another process listens on ${host}:${port}`;
  return new PserverError("ADDRESS_IN_USE", text, { host, port }, { cause });
}
