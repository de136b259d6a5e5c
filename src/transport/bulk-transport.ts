import { readFileSync } from "node:fs";
import { createConnection, type OnReadOpts, type Socket } from "node:net";
import { rootCertificates, type TLSSocket } from "node:tls";
import {
  type NatsConnection,
  NatsConnectionImpl,
  type NodeConnectionOptions,
  setTransportFactory,
  TimeoutError,
  type TlsOptions,
} from "@nats-io/transport-node";
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js";
import { checkBrokerVersion } from "../protocol/broker-version.ts";
import { defined } from "../protocol/fields.ts";
import { ensureError, PserverError } from "../protocol/index.ts";
import { HEADER_BYTES_MAX } from "../protocol/limits.ts";
import { errnoCode } from "../system/file-errors.ts";
import type { Lender } from "./buffers.ts";
import { type Drops, FrameAssembler, type Lending } from "./frame-assembler.ts";
import { SilenceWatch, type Traffic } from "./silence-watch.ts";

/**
 * Largest message that the first broker of each connection takes: nats.js forgets the limit while the
 * connection is down.
 */
const FIRST_LIMITS = new WeakMap<NatsConnection, number>();

/** Remembers the largest message of a connection that has just been opened. */
export function rememberPayloadLimit(connection: NatsConnection): void {
  const bytesMax = connection.info?.max_payload;
  if (bytesMax !== undefined) FIRST_LIMITS.set(connection, bytesMax);
}

/**
 * Returns the largest message that the broker of a connection takes, in bytes; while the connection is down
 * or closed, what its first broker took. Infinity if no broker has said, so that no message is refused for an
 * unknown limit.
 */
export function payloadBytesMaxOf(connection: NatsConnection): number {
  return connection.info?.max_payload ?? FIRST_LIMITS.get(connection) ?? Number.POSITIVE_INFINITY;
}

/**
 * Returns the most tensor bytes of a message that the broker takes, however long the header before them is.
 */
export function dataBytesMaxOf(connection: NatsConnection): number {
  return payloadBytesMaxOf(connection) - HEADER_BYTES_MAX;
}

/** Files of the certificates that systems trust, such as Debian and Red Hat; the first that exists is read. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Error codes of Node.js for a refused certificate. */
const REFUSED_CERTIFICATE =
  /^(?!ERR_SSL_).*CERT|^INVALID_(?:CA|PURPOSE)$|^HOSTNAME_MISMATCH$|^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/;

/** Texts of nats.js for a broker that offers no TLS although options ask for it. */
const NO_TLS_TEXT = /server does not support 'tls'|tls is not available/i;

/**
 * Returns the certificates that are trusted if no file is given, each once, as PEM text: those of Node.js, of
 * the file in `NODE_EXTRA_CA_CERTS`, and of the operating system, which are in the file of `SSL_CERT_FILE` or
 * else in its bundle. Node.js alone does not know an authority that an administrator has installed.
 */
function trustedCertificates(): string {
  const { env } = process;
  const system = env["SSL_CERT_FILE"] ? [env["SSL_CERT_FILE"]] : SYSTEM_BUNDLES;
  const texts = [
    ...rootCertificates,
    readFirst([env["NODE_EXTRA_CA_CERTS"] ?? ""]),
    readFirst(system),
  ];
  const certificates = texts.flatMap((text) => text.match(CERTIFICATE) ?? []);
  // The same certificate may be wrapped at different line lengths.
  return [...new Map(certificates.map((pem) => [pem.replaceAll(/\s/g, ""), pem])).values()].join(
    "\n",
  );
}

/**
 * Returns NO_TLS if a connection failed because of TLS; undefined for any other failure. `where` names the
 * broker. For a refused certificate `details.certificate` is the code of Node.js.
 */
function tlsFailure(error: unknown, where: string): PserverError | undefined {
  if (!(error instanceof Error)) return undefined;
  const cause = { cause: error };
  if (NO_TLS_TEXT.test(error.message)) {
    const message = `the broker at ${where} offers no TLS, and nothing has been sent to it`;
    return new PserverError("NO_TLS", message, { server: where }, cause);
  }
  const certificate = errnoCode(error);
  if (certificate === undefined || !REFUSED_CERTIFICATE.test(certificate)) return undefined;
  const message = `the certificate of the broker at ${where} is refused: ${error.message}`;
  return new PserverError("NO_TLS", message, { server: where, certificate }, cause);
}

/** Reads the first file that can be read; "" if none can. */
function readFirst(paths: readonly string[]): string {
  for (const path of paths) {
    try {
      if (path !== "") return readFileSync(path, "latin1");
    } catch {
      // This system has another bundle. Without any, brokers that need it are refused as untrusted.
    }
  }
  return "";
}

// The package has no entry of its own for this class; its version is pinned.

/** Payloads from this size on are handed to the socket as they are. */
const BULK_BYTES = 16 * 1024;

/** Bytes gathered in one turn of the event loop before they are handed to the kernel. */
const GATHERED_BYTES_MAX = 1024 * 1024;

/** Bytes accepted while the greeting is awaited. */
const PEEKED_BYTES_MAX = 4 * 1024 * 1024;

/**
 * How long a broker may take for its greeting when a connection is made again: the caller's timeout may be long, and
 * another broker may be there.
 */
const ATTEMPT_MS = 10_000;

/** Pause between two warnings of malformed lines of one connection. */
const MALFORMED_REPEAT_MS = 60_000;

/** Time in one turn of the event loop for reading a connection to which many send, with its callbacks. */
const TURN_MS = 8;

const LINE_END = Buffer.from("\r\n");

type Address = Parameters<NodeTransport["dial"]>[0] & Parameters<NodeTransport["connect"]>[0];

/**
 * Options of a connection that carries tensors.
 * @internal
 */
export interface BulkConnectionOptions extends NodeConnectionOptions {
  /**
   * Messages that are valid only during the callback of their subscription, because their buffers are
   * reused. Without this option every message may be kept.
   */
  readonly lending?: Lending;
  /**
   * Senders whose messages are dropped unread, on a connection to which many send. With this option reading
   * takes a bounded time in each turn of the event loop, so that timers and other connections get theirs.
   */
  readonly drops?: Drops;
}

/**
 * Options by which a transport and its connection work together. They are absent if others in this process have made the
 * connection by nats.js: it makes the transports of their reconnects here, too.
 */
interface WatchedOptions extends BulkConnectionOptions {
  /** Takes malformed input. */
  readonly onMalformed?: (error: PserverError, address: string) => void;
  /** Returns how long one attempt to reach a broker may take; undefined for the time of the caller who connects. */
  readonly attemptMs?: () => number | undefined;
}

/**
 * The transport of nats.js for large messages: the kernel reads a payload straight into its own
 * buffer, and writes it straight from the caller's. The stock transport copies each payload about
 * three times on the way in and once on the way out.
 *
 * Everything but reading and writing plain TCP is left to the stock transport, TLS above all. Malformed input
 * is reported to the connection and ends it; nats.js makes a new one.
 */
class BulkTransport extends NodeTransport {
  #address: Address | undefined;
  /** Whether TLS is wanted before the broker has said that it offers it. */
  #asksForTls = false;
  /** The socket until it is connected. */
  #dialled: Socket | undefined;
  /** The lender of each chunk that has not been handled yet. */
  readonly #lenders: Map<Uint8Array, Lender> = new Map();
  #lending: Lending | undefined;
  #drops: Drops | undefined;
  #onMalformed: WatchedOptions["onMalformed"] | undefined;
  #turnEndsAtMs: number | undefined;
  #gathering: Socket | undefined;
  #gatheredBytes = 0;
  /** The error for malformed input, after which nothing is read; undefined before. */
  #malformed: PserverError | undefined;

  /**
   * Connects as the stock transport does, and notes what may be lent.
   * @throws NO_TLS if TLS is required and not available; what the stock transport throws; for malformed
   * input an error that nats.js treats as no answer, because another attempt may find a broker.
   */
  override async connect(address: Address, options: WatchedOptions): Promise<void> {
    this.#asksForTls = typeof options.tls === "object" && options.tls !== null;
    this.#lending = options.lending;
    this.#drops = options.drops;
    this.#onMalformed = options.onMalformed;
    const attemptMs = options.attemptMs?.();
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      if (attemptMs === undefined) return;
      timer = setTimeout(() => reject(new Error(`no greeting within ${attemptMs} ms`)), attemptMs);
    });
    try {
      await Promise.race([super.connect(address, options), over]);
    } catch (error) {
      this.#abandon();
      if (this.#malformed !== undefined) throw notFromBroker(this.#malformed);
      throw tlsFailure(error, `${address.tlsName || address.hostname}:${address.port}`) ?? error;
    } finally {
      clearTimeout(timer);
    }
    if (this.#malformed !== undefined) throw notFromBroker(this.#malformed);
  }

  /**
   * Dials a socket that reads whole messages; in everything else it behaves as an ordinary one. TLS reads its socket
   * itself, so where it is asked for the socket is an ordinary one.
   */
  override dial(address: Address): Promise<Socket> {
    this.#address = address;
    if (this.#asksForTls) return this.#dial(address);
    const assembler = new FrameAssembler(
      ({ bytes, lender }) => {
        if (lender !== undefined) this.#lenders.set(bytes, lender);
        // The stock transport listens to this event, which a socket with `onread` does not emit.
        this.#dialled?.emit("data", bytes);
      },
      this.#lending,
      this.#drops,
    );
    return this.#dial(address, {
      buffer: () => assembler.target(),
      callback: (bytes) => {
        const socket = this.#dialled;
        if (socket === undefined) return false;
        this.#take(assembler, bytes, socket);
        return this.#mayReadOn(socket);
      },
    });
  }

  #dial({ hostname, port }: Address, onread?: OnReadOpts): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = createConnection({
        host: hostname,
        port,
        noDelay: true,
        ...defined({ onread }),
      });
      this.#dialled = socket;
      const failed = (error: Error): void => reject(error);
      socket.once("error", failed);
      socket.once("connect", () => {
        socket.off("error", failed);
        resolve(socket);
      });
    });
  }

  /**
   * Closes the transport. The stock one leaves a connection that is still being made to its timeout, for which the
   * process would live on.
   */
  override async close(error?: Error): Promise<void> {
    if (!this.connected) this.#abandon();
    await super.close(error);
  }

  /** Ends a connection that is still being made. */
  #abandon(): void {
    this.#dialled?.destroy();
    this.socket?.destroy();
  }

  /** Passes received bytes on; malformed input ends the connection. */
  #take(assembler: FrameAssembler, bytes: number, socket: Socket): void {
    if (this.#malformed !== undefined) return;
    try {
      assembler.took(bytes);
    } catch (error) {
      this.#malformed = ensureError(error);
      this.#onMalformed?.(this.#malformed, `${this.#address?.hostname}:${this.#address?.port}`);
      // Without an argument: an error event without a listener would end the process.
      socket.destroy();
    }
  }

  /**
   * Returns whether reading may go on in this turn of the event loop; if not, has it resume in the next one.
   */
  #mayReadOn(socket: Socket): boolean {
    if (this.#drops === undefined) return true;
    if (this.#turnEndsAtMs === undefined) {
      this.#turnEndsAtMs = performance.now() + TURN_MS;
      setImmediate(() => {
        this.#turnEndsAtMs = undefined;
        socket.resume();
      });
    }
    return performance.now() < this.#turnEndsAtMs;
  }

  /**
   * Starts TLS. It reads the socket itself, so it gets an ordinary one: a new one, if only the broker asks for TLS. This
   * machine must trust the
   * certificate, unless options name others to trust, and it must be for the host that was dialled.
   */
  override async startTLS(): Promise<TLSSocket> {
    if (this.#address === undefined) return super.startTLS();
    if (!this.#asksForTls) {
      this.socket.destroy();
      this.socket = await this.#dial(this.#address);
      // The greeting comes again on the new socket: the first one is dropped.
      this.yields = [];
      await this.peekInfo();
    }
    this.yields = [greetingIn(this.yields)];
    const { tls } = this.options;
    const trusted = tls?.caFile === undefined ? { ca: trustedCertificates() } : {};
    // Without a host name Node.js would check the certificate for "localhost".
    const named: TlsOptions & { host: string } = {
      host: this.#address.hostname,
      ...trusted,
      ...tls,
    };
    this.options = { ...this.options, tls: named };
    return super.startTLS();
  }

  /** Waits for the greeting, whose size is limited, which the stock transport does not do. */
  override peekInfo(): ReturnType<NodeTransport["peekInfo"]> {
    const { socket } = this;
    let bytes = 0;
    socket.on("data", (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > PEEKED_BYTES_MAX) socket.destroy();
    });
    return super.peekInfo();
  }

  /** Yields the chunks that were read; a chunk has been handled when the next one is asked for. */
  override async *iterate(): AsyncGenerator<Uint8Array, void, undefined> {
    const cut = this.isEncrypted() ? this.#cutter() : undefined;
    try {
      for await (const chunk of super.iterate()) {
        if (cut === undefined) {
          yield chunk;
          this.#lenders.get(chunk)?.giveBack(chunk);
          this.#lenders.delete(chunk);
        } else yield* cut(chunk);
      }
    } finally {
      // Only an error ends the loop early. nats.js then reads no more, so the connection must be made again.
      this.socket?.destroy();
    }
  }

  /** Makes a function that applies the checks and drops of plain connections to what TLS has read. */
  #cutter(): (chunk: Uint8Array) => readonly Uint8Array[] {
    const { socket } = this;
    const whole: Uint8Array[] = [];
    const assembler = new FrameAssembler(
      ({ bytes }) => void whole.push(bytes),
      undefined,
      this.#drops,
    );
    return (chunk) => {
      for (let at = 0; at < chunk.length; ) {
        const target = assembler.target();
        target.set(chunk.subarray(at, at + target.length));
        const bytes = Math.min(target.length, chunk.length - at);
        this.#take(assembler, bytes, socket);
        at += bytes;
      }
      return whole.splice(0);
    };
  }

  /** Bytes that the socket has read, taken to write, and written; undefined before it is connected. */
  get traffic(): Traffic | undefined {
    if (this.isClosed || this.socket === undefined) return undefined;
    const { bytesRead, bytesWritten } = this.socket;
    const leftBytes = bytesWritten - queuedBytes(this.socket);
    return { receivedBytes: bytesRead, sentBytes: bytesWritten, leftBytes };
  }

  /**
   * Ends the connection at once, whereupon nats.js makes a new one. Its own `disconnect` first waits until everything
   * is written, for ever if the broker reads nothing.
   */
  abort(): void {
    this.socket?.destroy();
  }

  /** Writes one message after what was sent before; the payload must not be changed afterwards. */
  sendMessage(line: string, payload: Uint8Array): void {
    if (this.isClosed || this.socket === undefined) return;
    this.#gather(this.socket);
    this.socket.write(line, "latin1");
    this.socket.write(payload);
    // Errors of writing are noticed in reading, or by unanswered pings.
    this.socket.write(LINE_END);
    this.#gatheredBytes += payload.length;
    if (this.#gatheredBytes >= GATHERED_BYTES_MAX) this.#handOver(this.socket);
  }

  /** Hands gathered bytes to the kernel, so that the peer reads them while the next messages are made. */
  #handOver(socket: Socket): void {
    this.#gatheredBytes = 0;
    socket.uncork();
    socket.cork();
  }

  /** Gathers what is written in one turn of the event loop, so that it takes few system calls. */
  #gather(socket: Socket): void {
    if (this.#gathering === socket) return;
    this.#gathering = socket;
    this.#gatheredBytes = 0;
    socket.cork();
    process.nextTick(() => {
      this.#gathering = undefined;
      socket.uncork();
    });
  }
}

/**
 * Returns how many bytes a socket holds that the kernel has not taken. Of a write that the kernel has taken in part, only
 * the handle knows the rest, by which Node.js judges the timeouts of its own sockets.
 */
function queuedBytes(socket: Socket): number {
  const { _handle: handle } = socket as {
    readonly _handle?: { bytesWritten?: number; writeQueueSize?: number };
  };
  const { bytesWritten, writeQueueSize } = handle ?? {};
  if (bytesWritten === undefined || writeQueueSize === undefined) return socket.writableLength;
  return socket.bytesWritten - bytesWritten + writeQueueSize;
}

/** Returns the first line of what came before TLS: anything after it may be forged. */
function greetingIn(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = Buffer.concat(chunks);
  return bytes.subarray(0, bytes.indexOf(LINE_END) + LINE_END.length);
}

function notFromBroker(cause: PserverError): Error {
  return new Error(cause.message, { cause });
}

/**
 * Connects as nats.js's own `connect` does, with a transport made for large messages, and a {@link SilenceWatch} in place
 * of nats.js's PINGs. If an open connection gets
 * malformed input, the process emits a warning with the error, BAD_MESSAGE, at most once a minute: the connection
 * begins again, and nothing else would say why.
 * @throws BROKER_TOO_OLD, as {@link checkBrokerVersion} does; what nats.js throws.
 * @internal
 */
export async function connectForBulk(options: BulkConnectionOptions): Promise<NatsConnection> {
  // Set before each connection, as nats.js does. The last factory also serves all reconnects, so whatever
  // differs between connections must be in their options.
  setTransportFactory({ factory: () => new BulkTransport(), dnsResolveFn: nodeResolveHost });
  const malformed = new MalformedInput();
  let isOpen = false;
  const watched: WatchedOptions = {
    ...options,
    onMalformed: (error, address) => malformed.take(error, address),
    attemptMs: () => (isOpen ? ATTEMPT_MS : undefined),
  };
  const connection = await NatsConnectionImpl.connect(watched).catch((error: unknown) => {
    // After the greeting nats.js waits for the broker's PONG, whatever comes.
    const { last } = malformed;
    throw error instanceof TimeoutError && last !== undefined ? notFromBroker(last) : error;
  });
  malformed.warns = true;
  isOpen = true;
  rememberPayloadLimit(connection);
  watchSilence(connection);
  // Without a greeting the connection is lost already.
  const { info } = connection;
  try {
    if (info !== undefined) checkBrokerVersion(info.version);
  } catch (error) {
    await connection.close();
    throw error;
  }
  return connection;
}

/** Watches a connection until it is closed for good. */
function watchSilence(connection: NatsConnection): void {
  const watch = new SilenceWatch({
    traffic: () => trafficOf(connection),
    ping: () => connection.flush(),
    end: () => openTransportOf(connection)?.abort(),
  });
  void connection.closed().then(() => watch.stop());
}

/** Returns what the present connection to the broker has carried; undefined while there is none. */
export function trafficOf(connection: NatsConnection): Traffic | undefined {
  return openTransportOf(connection)?.traffic;
}

/** What is malformed in the input of one connection. */
class MalformedInput {
  /** Whether to emit a warning: once the connection is open, no caller waits for the error. */
  warns = false;
  /** The last error. */
  last: PserverError | undefined;
  #warnedAtMs: number = Number.NEGATIVE_INFINITY;

  take(error: PserverError, address: string): void {
    this.last = error;
    const nowMs = performance.now();
    if (!this.warns || nowMs - this.#warnedAtMs < MALFORMED_REPEAT_MS) return;
    this.#warnedAtMs = nowMs;
    const { code, message, details } = error;
    process.emitWarning(
      new PserverError(code, `the connection to ${address} begins again: ${message}`, details),
    );
  }
}

/**
 * Publishes as `connection.publish` does, but does not copy a large payload. The payload must not be
 * changed until the broker has answered it or a later flush.
 * @internal
 */
export function publishBulk(
  connection: NatsConnection,
  subject: string,
  payload: Uint8Array,
  reply?: string,
): void {
  const transport = payload.length < BULK_BYTES ? undefined : bulkTransportOf(connection);
  // Left to nats.js: small messages, too large ones, and a connection that is down.
  if (transport === undefined || payload.length > payloadBytesMaxOf(connection)) {
    connection.publish(subject, payload, reply === undefined ? {} : { reply });
    return;
  }
  const to = reply === undefined ? subject : `${subject} ${reply}`;
  transport.sendMessage(`PUB ${to} ${payload.length}\r\n`, payload);
}

/** Returns the transport of an open connection, after flushing what nats.js has queued for it. */
function bulkTransportOf(connection: NatsConnection): BulkTransport | undefined {
  if (!(connection instanceof NatsConnectionImpl) || connection.isDraining()) return undefined;
  // Private only in the types. Sends at once what would otherwise follow in a microtask.
  const protocol = connection.protocol as unknown as { flushPending(): void };
  const transport = openTransportOf(connection);
  if (transport !== undefined) protocol.flushPending();
  return transport;
}

/** Returns the transport of a connection; undefined while the connection is down or closed. */
function openTransportOf(connection: NatsConnection): BulkTransport | undefined {
  if (!(connection instanceof NatsConnectionImpl) || connection.isClosed()) return undefined;
  const { protocol } = connection;
  if (!protocol.connected || !protocol.infoReceived) return undefined;
  return protocol.transport instanceof BulkTransport ? protocol.transport : undefined;
}
