import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { PserverError } from "../../protocol/errors.ts";
import { errnoCode } from "../../system/file-errors.ts";
import type { Timeouts } from "./byte-source.ts";
import { LegionConnection } from "./connection.ts";
import type { RequestHandler } from "./request-handler.ts";

/** How long requests under way may take after the gateway is stopped. */
const DRAIN_MS = 10_000;

/** Errors after which the client that all connections share cannot be used any more. */
const FATAL: ReadonlySet<string> = new Set(["SUPERSEDED", "CLOSED"]);

/** Dependencies of {@link LegionGateway}. */
export interface GatewayOptions {
  /** Address to listen on. */
  readonly listen: string;
  /** 0 takes any free one. */
  readonly port: number;
  readonly connectionsMax: number;
  readonly timeouts: Timeouts;
  /** Makes the handler of one connection; `tell` prints a message that names the connection. */
  readonly handlerFor: (tell: (text: string) => void) => RequestHandler;
  readonly onMessage: (text: string) => void;
  readonly onWarning: (text: string) => void;
}

/** Accepts trainers that speak Legion's protocol, and serves each until it leaves. */
export class LegionGateway {
  readonly #options: GatewayOptions;
  readonly #server: Server;
  readonly #connections = new Map<LegionConnection, Promise<void>>();
  #fail: (error: PserverError) => void = () => undefined;
  /** Settles with the reason when the gateway cannot go on. */
  readonly failed: Promise<PserverError>;

  private constructor(options: GatewayOptions, server: Server) {
    this.#options = options;
    this.#server = server;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
  }

  /** A gateway that listens. @throws ADDRESS_IN_USE, or IO for an address that is not this machine's. */
  static async start(options: GatewayOptions): Promise<LegionGateway> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const gateway = new LegionGateway(options, server);
    server.on("connection", (socket) => gateway.#accept(socket));
    const { listen: host, port } = options;
    try {
      server.listen({ host, port });
      await once(server, "listening");
    } catch (cause) {
      const errno = errnoCode(cause);
      const inUse = errno === "EADDRINUSE";
      throw new PserverError(
        inUse ? "ADDRESS_IN_USE" : "IO",
        inUse
          ? `another process listens on ${host}:${port}`
          : `cannot listen on ${host}:${port}: ${errno}`,
        { address: host, port },
        { cause },
      );
    }
    server.on("error", (error) => options.onWarning(`cannot accept: ${error.message}`));
    return gateway;
  }

  /** The port that it listens on. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Stops accepting, waits up to 10 s for requests under way, and closes all connections. */
  async close(): Promise<void> {
    this.#server.close();
    for (const connection of this.#connections.keys()) connection.close();
    const timer = setTimeout(() => {
      for (const connection of this.#connections.keys()) connection.destroy();
    }, DRAIN_MS);
    await Promise.all(this.#connections.values());
    clearTimeout(timer);
  }

  #accept(socket: Socket): void {
    const { timeouts, connectionsMax, handlerFor, onMessage, onWarning } = this.#options;
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    if (this.#connections.size >= connectionsMax) {
      onWarning(`${peer}: refused: ${connectionsMax} trainers are already connected`);
      socket.on("error", () => undefined);
      socket.destroy();
      return;
    }
    const handler = handlerFor((text) => onMessage(`${peer}: ${text}`));
    const connection = LegionConnection.accept(socket, timeouts, handler);
    onMessage(`${peer}: connected`);
    const served = connection.run().then((error) => {
      this.#connections.delete(connection);
      if (error === undefined) onMessage(`${peer}: left`);
      else onWarning(`${peer}: closed: ${error.code}: ${error.message}`);
      if (error !== undefined && FATAL.has(error.code)) this.#fail(error);
    });
    this.#connections.set(connection, served);
  }
}
