import { connect, createServer, type Server, type Socket } from "node:net";

/** What a NATS client calls its connection, in the first thing that it sends. */
const CONNECTION_NAME = /^CONNECT \{.*?"name":"([^"]*)"/;

/**
 * A line to a port of a broker on this machine that can fall silent, for all connections or for some: nothing
 * passes, and nothing is closed. It can also say something that the broker has not said.
 */
export class SilentLine implements AsyncDisposable {
  /** Where to connect to instead of the broker. */
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;
  readonly #near: Set<Socket>;
  readonly #setSilent: (silent: RegExp | undefined) => void;

  private constructor(
    server: Server,
    sockets: Set<Socket>,
    near: Set<Socket>,
    setSilent: (silent: RegExp | undefined) => void,
  ) {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    this.url = `nats://127.0.0.1:${port}`;
    this.#server = server;
    this.#sockets = sockets;
    this.#near = near;
    this.#setSilent = setSilent;
  }

  static async open(brokerPort: number): Promise<SilentLine> {
    const sockets = new Set<Socket>();
    const nearSockets = new Set<Socket>();
    let silent: RegExp | undefined;
    const server = createServer((near) => {
      const far = connect(brokerPort, "127.0.0.1");
      nearSockets.add(near);
      near.once("close", () => nearSockets.delete(near));
      let name = "";
      near.once("data", (chunk) => {
        name = CONNECTION_NAME.exec(chunk.toString())?.[1] ?? "";
      });
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on("data", (chunk) => {
          if (silent?.test(name) !== true) to.write(chunk);
        });
        from.on("error", () => to.destroy());
        from.on("close", () => {
          sockets.delete(from);
          to.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new SilentLine(server, sockets, nearSockets, (value) => {
      silent = value;
    });
  }

  /** From now on nothing passes, in either direction and on new connections too. */
  silence(): void {
    this.#setSilent(/^/);
  }

  /** Sends a line to everybody who is connected, as if the broker had. */
  say(line: string): void {
    for (const socket of this.#near) socket.write(`${line}\r\n`);
  }

  /** Ends the connections, which have lost bytes, and lets new ones pass, but for those whose name is `silent`. */
  restore(silent?: RegExp): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#setSilent(silent);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
