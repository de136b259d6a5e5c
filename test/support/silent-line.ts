import { connect, createServer, type Server, type Socket } from "node:net";

/** A line to a port of a broker on this machine that can fall silent: nothing passes, and nothing is closed. */
export class SilentLine implements AsyncDisposable {
  /** Where to connect to instead of the broker. */
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;
  readonly #setSilent: (isSilent: boolean) => void;

  private constructor(
    server: Server,
    sockets: Set<Socket>,
    setSilent: (isSilent: boolean) => void,
  ) {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    this.url = `nats://127.0.0.1:${port}`;
    this.#server = server;
    this.#sockets = sockets;
    this.#setSilent = setSilent;
  }

  static async open(brokerPort: number): Promise<SilentLine> {
    const sockets = new Set<Socket>();
    let isSilent = false;
    const server = createServer((near) => {
      const far = connect(brokerPort, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on("data", (chunk) => {
          if (!isSilent) to.write(chunk);
        });
        from.on("error", () => to.destroy());
        from.on("close", () => {
          sockets.delete(from);
          to.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new SilentLine(server, sockets, (value) => {
      isSilent = value;
    });
  }

  /** From now on nothing passes, in either direction and on new connections too. */
  silence(): void {
    this.#setSilent(true);
  }

  /** Ends the connections, which have lost bytes, and lets new ones pass. */
  restore(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#setSilent(false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
