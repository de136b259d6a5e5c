import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { fromBrokerError, orNoJetStream } from "../../transport/broker-error.ts";

/** First and longest pause between two attempts. */
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;

/**
 * Repeats the work of a host's start until a deadline that all of it shares, where the broker cannot do it
 * for now, such as a cluster without a leader.
 */
export class StartRetries {
  readonly #connection: Pick<NatsConnection, "info">;
  readonly #endsAtMs: number;

  constructor(connection: Pick<NatsConnection, "info">, timeoutMs: number) {
    this.#connection = connection;
    this.#endsAtMs = performance.now() + timeoutMs;
  }

  /**
   * Returns the result of `work`, which is repeated while its error is retryable and there is time.
   * @throws its last error; NO_JETSTREAM at once if the broker's JetStream does not answer because
   * it has none.
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let retryMs = RETRY_MS_MIN; ; retryMs = Math.min(2 * retryMs, RETRY_MS_MAX)) {
      try {
        return await work();
      } catch (caught) {
        const error = orNoJetStream(fromBrokerError(caught, "starting"), this.#connection);
        if (!error.retryable || performance.now() + retryMs >= this.#endsAtMs) throw error;
        await delay(retryMs);
      }
    }
  }
}
