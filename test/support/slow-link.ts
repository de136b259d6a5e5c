import { createConnection, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** Bytes that one connection may pass on before another one has its turn. */
const TURN_BYTES = 16 * 1024;

/** One direction of a link: all connections share its rate, in turns. */
class Direction {
  bytes = 0;
  readonly #bytesPerMs: number;
  readonly #gate: Gate;
  #freeAtMs = 0;

  constructor(bytesPerMs: number, gate: Gate) {
    this.#bytesPerMs = bytesPerMs;
    this.#gate = gate;
  }

  /** Waits until so many bytes have passed. */
  async pass(bytes: number): Promise<void> {
    await this.#gate.opened;
    const nowMs = performance.now();
    this.bytes += bytes;
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + bytes / this.#bytesPerMs;
    if (this.#freeAtMs > nowMs) await delay(this.#freeAtMs - nowMs);
  }
}

/** Lets everything pass, or nothing until it is opened again. */
class Gate {
  /** Settles when something may pass. */
  opened: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;

  shut(): void {
    this.open();
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open();
  }
}

/** A link to a broker that carries so many bytes a second in each direction, counts them, and can be cut. */
export class SlowLink {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  readonly #up: Direction;
  readonly #down: Direction;
  readonly #gate: Gate = new Gate();

  private constructor(targetPort: number, bytesPerSecond: number) {
    this.#up = new Direction(bytesPerSecond / 1_000, this.#gate);
    this.#down = new Direction(bytesPerSecond / 1_000, this.#gate);
    this.#server = createServer({ allowHalfOpen: true }, (near) => {
      const far = createConnection({ host: "127.0.0.1", port: targetPort, allowHalfOpen: true });
      this.#join(near, far, this.#up);
      this.#join(far, near, this.#down);
    });
  }

  /** Opens a link to this port of the machine; `Infinity` bytes a second are no limit. */
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

  /** From now on nothing passes, and nothing is closed; what is sent meanwhile waits, as in a network. */
  cut(): void {
    this.#gate.shut();
  }

  /** Lets pass what waits, and everything after it. */
  join(): void {
    this.#gate.open();
  }

  close(): void {
    this.#gate.open();
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
