import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";

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
