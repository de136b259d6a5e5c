import { createConnection, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import {
  type NatsConnection,
  NatsConnectionImpl,
  type NodeConnectionOptions,
  setTransportFactory,
  type TlsOptions,
} from "@nats-io/transport-node";
// The package has no entry of its own for this class; its version is pinned.
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js";
import { ensureError, type PserverError } from "../protocol/index.ts";
import type { Lender } from "./chunk.ts";
import { type Drops, FrameAssembler, type Lending } from "./frame-assembler.ts";
import { tlsFailure, trustedCertificates } from "./tls.ts";

/** Payloads from this size on are handed to the socket as they are. */
const BULK_BYTES = 16 * 1024;

/** What waits for the end of a turn of the event loop, which may take long, goes in parts of this size. */
const GATHERED_BYTES_MAX = 1024 * 1024;

/** Bytes up to the end of a greeting, and what may come with it. */
const PEEKED_BYTES_MAX = 4 * 1024 * 1024;

/** How long a connection to which many send is read in one turn, with what is done with each message. */
const TURN_MS = 8;

const LINE_END = Buffer.from("\r\n");

type Address = Parameters<NodeTransport["dial"]>[0] & Parameters<NodeTransport["connect"]>[0];

/** Options of a connection that carries tensors. */
export interface BulkConnectionOptions extends NodeConnectionOptions {
  /**
   * These messages are valid during the callback of their subscription only: their buffers are used
   * again. Without it every message may be kept.
   */
  readonly lending?: Lending;
  /**
   * For a connection to which many send: reading takes a bounded time of one turn of the event loop, so that
   * timers and other connections have theirs, and this says whose messages are dropped unread.
   */
  readonly drops?: Drops;
}

/**
 * The transport of nats.js for large messages: the kernel reads a payload straight into its own
 * buffer, and writes it straight from the caller's. The stock transport copies each payload about
 * three times on the way in and once on the way out.
 *
 * Everything but plain TCP reading is left to the stock transport, TLS above all. What no broker sends
 * ends the connection, and nats.js makes a new one.
 */
class BulkTransport extends NodeTransport {
  #address: Address | undefined;
  /** Of the chunks that have not been handled yet. */
  readonly #lenders: Map<Uint8Array, Lender> = new Map();
  #lending: Lending | undefined;
  #drops: Drops | undefined;
  #turnEndsAtMs: number | undefined;
  #gathering: Socket | undefined;
  #gatheredBytes = 0;
  /** What the broker sent that no broker sends: nothing is read after it. */
  #malformed: PserverError | undefined;

  /**
   * Connects as the stock transport does, and takes note of what may be lent.
   * @throws NO_TLS where TLS is asked for and cannot be had; what the stock transport throws, and what
   * says that no broker answers: there may be one at another attempt.
   */
  override async connect(address: Address, options: BulkConnectionOptions): Promise<void> {
    this.#lending = options.lending;
    this.#drops = options.drops;
    try {
      await super.connect(address, options);
    } catch (error) {
      if (this.#malformed !== undefined) throw notFromBroker(this.#malformed);
      throw tlsFailure(error, `${address.tlsName || address.hostname}:${address.port}`) ?? error;
    }
    if (this.#malformed !== undefined) throw notFromBroker(this.#malformed);
  }

  /** Dials a socket that reads whole messages and otherwise behaves as any. */
  override dial(address: Address): Promise<Socket> {
    this.#address = address;
    return new Promise((resolve, reject) => {
      const assembler = new FrameAssembler(
        ({ bytes, lender }) => {
          if (lender !== undefined) this.#lenders.set(bytes, lender);
          // The stock transport listens to this event, which `onread` takes the place of.
          socket.emit("data", bytes);
        },
        this.#lending,
        this.#drops,
      );
      const socket: Socket = createConnection({
        host: address.hostname,
        port: address.port,
        noDelay: true,
        onread: {
          buffer: () => assembler.target(),
          callback: (bytes) => {
            this.#take(assembler, bytes, socket);
            return this.#mayReadOn(socket);
          },
        },
      });
      const failed = (error: Error): void => reject(error);
      socket.once("error", failed);
      socket.once("connect", () => {
        socket.off("error", failed);
        resolve(socket);
      });
    });
  }

  /** Hands on what came, up to what no broker sends: that ends the connection. */
  #take(assembler: FrameAssembler, bytes: number, socket: Socket): void {
    if (this.#malformed !== undefined) return;
    try {
      assembler.took(bytes);
    } catch (error) {
      this.#malformed = ensureError(error);
      // Without the error: nobody may be listening for one, and then the process would end.
      socket.destroy();
    }
  }

  /** Whether there is more to read in this turn; if not, reading goes on in the next one. */
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
   * TLS reads the socket itself, so it gets an ordinary one. The certificate must be one that this
   * machine trusts, unless options say which to trust, and must name the host that was dialled.
   */
  override async startTLS(): Promise<TLSSocket> {
    if (this.#address === undefined) return super.startTLS();
    this.socket.destroy();
    this.socket = await super.dial(this.#address);
    // The greeting comes again with the new socket, and is to be read once.
    this.yields = [];
    await this.peekInfo();
    this.yields = [greetingIn(this.yields)];
    const { tls } = this.options;
    const trusted = tls?.caFile === undefined ? { ca: trustedCertificates() } : {};
    // Without a host, and where no name was looked up, Node.js would look for "localhost" in it.
    const named: TlsOptions & { host: string } = {
      host: this.#address.hostname,
      ...trusted,
      ...tls,
    };
    this.options = { ...this.options, tls: named };
    return super.startTLS();
  }

  /** The greeting, which the stock transport would gather without a bound on a socket of its own. */
  override peekInfo(): ReturnType<NodeTransport["peekInfo"]> {
    const { socket } = this;
    let bytes = 0;
    socket.on("data", (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > PEEKED_BYTES_MAX) socket.destroy();
    });
    return super.peekInfo();
  }

  /** What was read, chunk by chunk; when the next is asked for, the last one has been handled. */
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
      // Whoever stops before the end has thrown, and reads no more: only a new connection helps.
      this.socket?.destroy();
    }
  }

  /** Looks through what TLS has read as is done with what is read here. */
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

  /** Writes one message after what was sent before; the payload must not change any more. */
  sendMessage(line: string, payload: Uint8Array): void {
    if (this.isClosed || this.socket === undefined) return;
    this.#gather(this.socket);
    this.socket.write(line, "latin1");
    this.socket.write(payload);
    // Errors of writing show in reading, or as a peer that answers no ping.
    this.socket.write(LINE_END);
    this.#gatheredBytes += payload.length;
    if (this.#gatheredBytes >= GATHERED_BYTES_MAX) this.#handOver(this.socket);
  }

  /** The kernel gets what was gathered: the peer reads it while the next messages are made. */
  #handOver(socket: Socket): void {
    this.#gatheredBytes = 0;
    socket.uncork();
    socket.cork();
  }

  /** What is written in one turn of the event loop goes to the kernel in few calls. */
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

/** The first line of what came unprotected: what follows it may be anybody's. */
function greetingIn(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = Buffer.concat(chunks);
  return bytes.subarray(0, bytes.indexOf(LINE_END) + LINE_END.length);
}

function notFromBroker(cause: PserverError): Error {
  return new Error(cause.message, { cause });
}

/** Connects as nats.js's own `connect` does, with a transport made for large messages. */
export function connectForBulk(options: BulkConnectionOptions): Promise<NatsConnection> {
  // Set before each connection, as nats.js does it: the last one set serves all reconnects. What
  // differs between connections is in their options.
  setTransportFactory({ factory: () => new BulkTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}

/**
 * Publishes as `connection.publish` does, but writes a large payload from where it lies. It must
 * not be changed until the broker has answered to it, or to a later flush.
 */
export function publishBulk(
  connection: NatsConnection,
  subject: string,
  payload: Uint8Array,
  reply?: string,
): void {
  const transport = payload.length < BULK_BYTES ? undefined : bulkTransportOf(connection);
  const bytesMax = connection.info?.max_payload ?? 0;
  // nats.js knows what to do where the message is small, too large, or there is no connection.
  if (transport === undefined || payload.length > bytesMax) {
    connection.publish(subject, payload, reply === undefined ? {} : { reply });
    return;
  }
  const to = reply === undefined ? subject : `${subject} ${reply}`;
  transport.sendMessage(`PUB ${to} ${payload.length}\r\n`, payload);
}

/** The transport of a connection that stands, after what nats.js had still to send through it. */
function bulkTransportOf(connection: NatsConnection): BulkTransport | undefined {
  if (!(connection instanceof NatsConnectionImpl) || connection.isClosed()) return undefined;
  const { protocol } = connection;
  if (connection.isDraining() || !protocol.connected || !protocol.infoReceived) return undefined;
  // Private in the types alone: it sends at once what would follow in a microtask.
  (protocol as unknown as { flushPending(): void }).flushPending();
  return protocol.transport instanceof BulkTransport ? protocol.transport : undefined;
}
