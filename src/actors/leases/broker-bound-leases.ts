import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import type { Leases, LeaseValue } from "./leases.ts";

/** Checks that a broker answers. */
export class BrokerProbe {
  readonly #connection: Pick<NatsConnection, "flush">;
  readonly #timeoutMs: number;
  #underWay: Promise<void> | undefined;

  constructor(connection: Pick<NatsConnection, "flush">, timeoutMs: number) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
  }

  /** Settles when the broker answers; calls at the same time share one request. @throws NO_BROKER */
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
      throw fromBrokerError(error, "checking that the broker answers");
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Leases outside the broker, claimed, renewed and listed only while the broker answers. A host that has
 * lost the broker can serve nothing, so its leases must end; and while the broker is down trainers cannot
 * renew theirs, so a missing lease means nothing. Leases in the broker have both properties by nature.
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
