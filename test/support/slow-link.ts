import { createConnection, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** Bytes that one connection may pass on before another one has its turn. */
const TURN_BYTES = 16 * 1024;

/** One direction of a link: all connections share its rate, in turns. */
class Direction {
  bytes = 0;
  readonly #bytesPerMs: number;
  #freeAtMs = 0;

  constructor(bytesPerMs: number) {
    this.#bytesPerMs = bytesPerMs;
  }

  /** Waits until so many bytes have passed. */
  async pass(bytes: number): Promise<void> {
    const nowMs = performance.now();
    this.bytes += bytes;
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + bytes / this.#bytesPerMs;
    await delay(this.#freeAtMs - nowMs);
  }
}

/** A link to a broker that carries so many bytes a second in each direction, and counts them. */
export class SlowLink {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  readonly #up: Direction;
  readonly #down: Direction;

  private constructor(targetPort: number, bytesPerSecond: number) {
    this.#up = new Direction(bytesPerSecond / 1_000);
    this.#down = new Direction(bytesPerSecond / 1_000);
    this.#server = createServer({ allowHalfOpen: true }, (near) => {
      const far = createConnection({ host: "127.0.0.1", port: targetPort, allowHalfOpen: true });
      this.#join(near, far, this.#up);
      this.#join(far, near, this.#down);
    });
  }

  /** Opens a link to this port of the machine. */
  static async open(targetPort: number, bytesPerSecond: number): Promise<SlowLink> {
    const link = new SlowLink(targetPort, bytesPerSecond);
    await new Promise<void>((resolve) => {
      link.#server.listen(0, "127.0.0.1", resolve);
    });
    return link;
  }

  /** Where clients find the broker. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the link is closed");
    return `nats://127.0.0.1:${address.port}`;
  }

  /** Bytes that clients have sent. */
  get sentBytes(): number {
    return this.#up.bytes;
  }

  /** Bytes that have come to clients. */
  get receivedBytes(): number {
    return this.#down.bytes;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(from: Socket, to: Socket, direction: Direction): void {
    this.#sockets.add(from);
    from.on("error", () => undefined);
    from.once("close", () => this.#sockets.delete(from));
    void this.#carry(from, to, direction);
  }

  async #carry(from: Socket, to: Socket, direction: Direction): Promise<void> {
    try {
      // Without the option the end of one direction would end the other, too.
      const chunks: AsyncIterable<Buffer> = from.iterator({ destroyOnReturn: false });
      for await (const chunk of chunks) {
        for (let at = 0; at < chunk.length; at += TURN_BYTES) {
          const turn = chunk.subarray(at, at + TURN_BYTES);
          await direction.pass(turn.length);
          if (!to.destroyed) to.write(turn);
        }
      }
      to.end();
    } catch {
      // A connection that breaks ends its other half.
      to.destroy();
    }
  }
}
