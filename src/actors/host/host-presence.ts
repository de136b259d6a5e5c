import type { NatsConnection } from "@nats-io/transport-node";
import { HOSTS_QUEUE, type JobSubjects } from "../../protocol/index.ts";
import type { LeaseValue } from "../job/leases.ts";

/** Later than every time of `process.hrtime`. */
const NEVER_NS = 2n ** 63n - 1n;

/**
 * Listens to the subject of a run of a host, and does nothing with what comes. As long as any connection listens, the
 * broker does not tell other hosts that nobody does.
 */
export function listenForPresence(
  connection: NatsConnection,
  subjects: JobSubjects,
  run: string,
): void {
  connection.subscribe(subjects.presence(run), { queue: HOSTS_QUEUE, callback: () => undefined });
}

/** A worker's connection that answers, as its worker tells of it when it was made or made anew. */
export interface ConnectedNotice {
  /** How often it was made. */
  readonly connection: number;
  /** Id of the broker that it leads to: each run of a broker has another one. */
  readonly broker: string;
}

/** Answer to a {@link ConnectedNotice}: leases that are claimed or renewed from then on name the broker. */
export interface ConnectedReceipt {
  readonly connection: number;
  /** A time of `process.hrtime`. */
  readonly namedSinceNs: bigint;
}

/**
 * A worker's connection that answers. When it was lost, and with it what the broker knew of its subscriptions, another
 * host may have ended the leases: nothing may be answered before they have been renewed over the store's own
 * compare-and-swap, in a value that names the broker that the connection now leads to.
 */
export class AnsweringConnection {
  readonly #connection: NatsConnection;
  readonly #tell: (notice: ConnectedNotice) => void;
  #made = 0;
  #namedSinceNs = NEVER_NS;

  constructor(connection: NatsConnection, tell: (notice: ConnectedNotice) => void) {
    this.#connection = connection;
    this.#tell = tell;
  }

  /** Tells of the connection, and whenever it was made anew, until it is closed. */
  async watch(): Promise<void> {
    this.#connected();
    for await (const { type } of this.#connection.status()) {
      if (type === "disconnect") this.#namedSinceNs = NEVER_NS;
      else if (type === "reconnect") this.#connected();
    }
  }

  /** Takes the answer to what was told; one that is about an earlier connection does not count. */
  named({ connection, namedSinceNs }: ConnectedReceipt): void {
    if (connection === this.#made) this.#namedSinceNs = namedSinceNs;
  }

  /** From when on a lease must have been renewed, in times of `process.hrtime`; never, while it is not connected. */
  get namedSinceNs(): bigint {
    return this.#namedSinceNs;
  }

  #connected(): void {
    this.#made += 1;
    this.#namedSinceNs = NEVER_NS;
    this.#tell({ connection: this.#made, broker: this.#connection.info?.server_id ?? "" });
  }
}

/** What the leases of one run of a host say of it. */
export class HostIdentity {
  readonly #value: LeaseValue;
  /** The broker of each worker's connection. */
  readonly #brokers: Map<unknown, string> = new Map();
  #connections = 0;

  /** `value`: the part that stays; its `owner` is unique to this run of the host. */
  constructor(value: LeaseValue) {
    this.#value = value;
  }

  /** Notes that a worker's connection was made. */
  connected(worker: unknown, broker: string): void {
    this.#brokers.set(worker, broker);
    this.#connections += 1;
  }

  /**
   * The value of the leases: also the brokers to which the connections lead that answer, and how often one was made, so
   * that a renewal after that is a write.
   */
  get value(): LeaseValue {
    const brokers = [...new Set(this.#brokers.values())].sort();
    return { ...this.#value, brokers, connections: this.#connections };
  }
}
