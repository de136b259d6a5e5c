import { createServer, type Server, type Socket } from "node:net";

/** A process on this machine that speaks just enough to be taken for a broker, and then says anything. */
export class HostileBroker implements AsyncDisposable {
  readonly url: string;
  /** Connections that were greeted and have asked for a sign of life. */
  accepted = 0;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>, port: number) {
    this.#server = server;
    this.#sockets = sockets;
    this.url = `nats://127.0.0.1:${port}`;
  }

  /** `greeting`: what each connection is sent first. */
  static async open(greeting: string): Promise<HostileBroker> {
    const sockets = new Set<Socket>();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const broker = new HostileBroker(server, sockets, port);
    server.on("connection", (socket) => {
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
      socket.write(greeting, "latin1");
      let isFirst = true;
      socket.on("data", (chunk) => {
        for (const _ of chunk.toString("latin1").matchAll(/PING\r\n/g)) {
          socket.write("PONG\r\n");
          if (isFirst) {
            isFirst = false;
            broker.accepted++;
            sockets.add(socket);
          }
        }
      });
    });
    return broker;
  }

  /** Sends bytes to everybody who is connected. */
  say(bytes: Uint8Array): void {
    for (const socket of this.#sockets) socket.write(bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
