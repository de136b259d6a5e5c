import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import type { Leases, LeaseValue } from "./leases.ts";

/** Asks a broker for a sign of life. */
export class BrokerProbe {
  readonly #connection: Pick<NatsConnection, "flush">;
  readonly #timeoutMs: number;
  #underWay: Promise<void> | undefined;

  constructor(connection: Pick<NatsConnection, "flush">, timeoutMs: number) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
  }

  /** Settles when the broker answers; askers at the same time share one question. @throws NO_BROKER. */
  reach(): Promise<void> {
    this.#underWay ??= this.#ask().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #ask(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const text = `the broker has not answered for ${this.#timeoutMs} ms`;
        reject(new PserverError("NO_BROKER", text));
      }, this.#timeoutMs);
    });
    try {
      await Promise.race([this.#connection.flush(), timeout]);
    } catch (error) {
      throw fromBrokerError(error, "asking the broker for a sign of life");
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Leases beside the broker, held by who reaches the broker. A host that has lost it can serve nothing,
 * so its leases must end; and while it is away trainers cannot renew theirs, so their absence says
 * nothing. Leases that the broker keeps itself have both by nature.
 */
export class BrokerBoundLeases implements Leases {
  readonly #leases: Leases;
  readonly #probe: BrokerProbe;

  constructor(leases: Leases, probe: BrokerProbe) {
    this.#leases = leases;
    this.#probe = probe;
  }

  async claim(key: string, value: LeaseValue): Promise<boolean> {
    await this.#probe.reach();
    return await this.#leases.claim(key, value);
  }

  async renew(key: string, value: LeaseValue): Promise<boolean> {
    await this.#probe.reach();
    return await this.#leases.renew(key, value);
  }

  async keys(prefix: string): Promise<ReadonlySet<string>> {
    await this.#probe.reach();
    return await this.#leases.keys(prefix);
  }

  release(key: string, value: LeaseValue): Promise<void> {
    return this.#leases.release(key, value);
  }

  read(key: string): Promise<LeaseValue | undefined> {
    return this.#leases.read(key);
  }

  list(prefix: string): Promise<Map<string, LeaseValue>> {
    return this.#leases.list(prefix);
  }
}
