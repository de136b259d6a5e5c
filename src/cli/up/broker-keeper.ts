import { statfs } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Broker } from "../../broker/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { io } from "../../system/file-errors.ts";
import { RESTARTS_MAX, STEADY_MS } from "./restarts.ts";

const RESTART_DELAY_MS = 500;

/** Free bytes needed for a restart: several of the largest records, and what a broker writes itself. */
const RESTART_FREE_BYTES = 32 * 1024 * 1024;

/** Dependencies of {@link BrokerKeeper}. */
export interface BrokerKeeperOptions {
  /** Starts the broker: the first time with no port, then on the port that it had. */
  readonly start: (port: number | undefined, onStoreStuck: () => void) => Promise<Broker>;
  readonly onMessage: (text: string) => void;
  readonly restartDelayMs?: number;
}

/**
 * Keeps a broker running. It is started again, on the same port and store, if it ends by itself, and if a
 * full disk has left it unable to write and space is free again.
 */
export class BrokerKeeper {
  /** Settles with the reason once the broker has ended and cannot be started again. */
  readonly failed: Promise<PserverError>;
  readonly #options: BrokerKeeperOptions;
  readonly #stopping = new AbortController();
  #broker: Broker;
  #fail: (error: PserverError) => void = () => {};
  #restarting: Promise<void> = Promise.resolve();
  #isRenewing = false;

  private constructor(broker: Broker, options: BrokerKeeperOptions) {
    this.#broker = broker;
    this.#options = options;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
  }

  /** @throws as `options.start` does: the first start is not repeated. */
  static async start(options: BrokerKeeperOptions): Promise<BrokerKeeper> {
    let keeper: BrokerKeeper | undefined;
    const broker = await options.start(undefined, () => {
      if (keeper !== undefined) void keeper.#renew();
    });
    keeper = new BrokerKeeper(broker, options);
    keeper.#watch(0);
    return keeper;
  }

  /** The broker that runs now, or ran last. */
  get broker(): Broker {
    return this.#broker;
  }

  /** Stops the broker in order; it is not started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#restarting;
    await this.#broker.stop();
  }

  #watch(failures: number): void {
    const startedMs = performance.now();
    const { exited } = this.#broker;
    void exited.then(({ code, signal }) => {
      if (this.#stopping.signal.aborted) return;
      const steady = performance.now() - startedMs >= STEADY_MS;
      const reason = signal === null ? `with exit code ${code}` : `by ${signal}`;
      this.#restarting = this.#restart(`the broker ended ${reason}`, steady ? 0 : failures);
    });
  }

  /** Stops a broker that cannot write its store any more, so that it is started again. */
  async #renew(): Promise<void> {
    if (this.#isRenewing || this.#stopping.signal.aborted) return;
    this.#isRenewing = true;
    const { storeDir } = this.#broker;
    try {
      const { bavail, bsize } = await io("look at the disk of", storeDir, statfs(storeDir));
      // Without free space it would soon fail again; it reports that with the next record.
      if (bavail * bsize < RESTART_FREE_BYTES) return;
      const told =
        "the broker cannot write since its disk was full; space is free again: restarting it";
      this.#options.onMessage(told);
      await this.#broker.stop();
    } catch (error) {
      this.#options.onMessage(ensureError(error).message);
    } finally {
      this.#isRenewing = false;
    }
  }

  async #restart(firstReason: string, firstFailures: number): Promise<void> {
    const { start, onMessage, restartDelayMs = RESTART_DELAY_MS } = this.#options;
    let reason = firstReason;
    let cause: PserverError | undefined;
    for (let failures = firstFailures + 1; failures <= RESTARTS_MAX; failures++) {
      onMessage(`${reason}; starting it again (${failures} of ${RESTARTS_MAX})`);
      try {
        await delay(restartDelayMs * failures, undefined, { signal: this.#stopping.signal });
        this.#broker = await start(this.#broker.port, () => void this.#renew());
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        cause = ensureError(error);
        reason = cause.message;
        continue;
      }
      onMessage(`the broker is back at ${this.#broker.url}`);
      this.#watch(failures);
      return;
    }
    const message = `${reason}; it was started again ${RESTARTS_MAX} times`;
    this.#fail(new PserverError(cause?.code ?? "NO_BROKER", message, {}, { cause }));
  }
}
