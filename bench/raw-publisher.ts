import { setTimeout as delay } from "node:timers/promises";
import { jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { machineMs } from "./agent.ts";

/** How long one attempt to publish may take before the next broker is tried, and the pause between two messages. */
const ATTEMPT_MS = 250;
const PAUSE_MS = 20;

const STREAM_MS = 60_000;

/** One stream, and when messages to it were stored. */
interface RawStream {
  readonly name: string;
  readonly storedMs: number[];
  /** When the last message that was stored was first sent. */
  begunMs: number;
}

/**
 * Publishes small messages to streams all the time with plain nats.js, one after the other in each stream, and each
 * until a broker has stored it. It asks all brokers in turn, so that it finds a stream that stores as soon as there is
 * one: what a broker itself needs for a failover.
 */
export class RawPublisher {
  readonly #connections: readonly NatsConnection[];
  readonly #streams: readonly RawStream[];
  #isClosed = false;

  private constructor(connections: readonly NatsConnection[], streams: readonly RawStream[]) {
    this.#connections = connections;
    this.#streams = streams;
  }

  /** Makes so many streams, kept as often as there are brokers, and begins to publish. */
  static async start(urls: readonly string[], count: number): Promise<RawPublisher> {
    const connections = await Promise.all(
      urls.map((servers) =>
        connect({ servers, ignoreClusterUpdates: true, maxReconnectAttempts: -1 }),
      ),
    );
    const streams = Array.from({ length: count }, (_, i) => ({
      ...{ name: `raw-${i}`, begunMs: 0 },
      storedMs: [],
    }));
    const [first] = connections;
    if (first === undefined) throw new Error("expected a broker");
    const manager = await jetstreamManager(first, { timeout: STREAM_MS });
    for (const { name } of streams) {
      await manager.streams.add({
        ...{ name, subjects: [name], storage: StorageType.File },
        num_replicas: urls.length,
      });
    }
    const publisher = new RawPublisher(connections, streams);
    for (const stream of streams) void publisher.#keepPublishing(stream);
    return publisher;
  }

  /** The names of the streams. */
  get streams(): string[] {
    return this.#streams.map(({ name }) => name);
  }

  /**
   * Waits until each stream has stored a message that was first sent after `untilMs`. Returns the longest time since
   * `sinceMs` in which a stream stored nothing.
   */
  async longestStallMs(sinceMs: number, untilMs: number): Promise<number> {
    while (this.#streams.some(({ begunMs }) => begunMs < untilMs)) await delay(PAUSE_MS);
    return Math.max(
      ...this.#streams.map(({ storedMs }) =>
        longestPauseMs(
          sinceMs,
          storedMs.filter((atMs) => atMs >= sinceMs),
        ),
      ),
    );
  }

  /** Stops publishing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  async #keepPublishing(stream: RawStream): Promise<void> {
    const clients = this.#connections.map((connection) => jetstream(connection));
    let turn = 0;
    while (!this.#isClosed) {
      const begunMs = machineMs();
      let isStored = false;
      while (!isStored && !this.#isClosed) {
        try {
          await clients[turn % clients.length]?.publish(stream.name, "", { timeout: ATTEMPT_MS });
          isStored = true;
        } catch {
          // This broker reaches no leader of the stream, or is away.
          turn += 1;
          await delay(PAUSE_MS);
        }
      }
      stream.storedMs.push(machineMs());
      stream.begunMs = begunMs;
      await delay(PAUSE_MS);
    }
  }
}

/** The longest time between `sinceMs` and these times, which are in order, or between two of them. */
export function longestPauseMs(sinceMs: number, timesMs: readonly number[]): number {
  return Math.max(0, ...timesMs.map((atMs, i) => atMs - (timesMs[i - 1] ?? sinceMs)));
}
