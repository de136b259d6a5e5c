import { setTimeout as delay } from "node:timers/promises";
import { ensureError, type PserverError } from "../../protocol/errors.ts";
import { RESTARTS_MAX, STEADY_MS } from "./restarts.ts";
import type { RunningHost } from "./running-hosts.ts";

/** A host that has been started, here or in a process of its own. */
export interface StartedHost extends RunningHost {
  /** Settles with its id once it serves; rejects with the error that kept it from starting. */
  readonly ready: Promise<string>;
}

/** Dependencies of {@link KeptHost}. */
export interface KeptHostOptions {
  /** For messages. */
  readonly name: string;
  readonly start: () => StartedHost;
  readonly onMessage: (text: string) => void;
  /** Pause before the first restart; it doubles with each that fails. */
  readonly restartDelayMs?: number;
  /** Waits for `delayMs`, or rejects when the signal is aborted. */
  readonly pause?: (delayMs: number, signal: AbortSignal) => Promise<void>;
}

const RESTART_DELAY_MS = 500;

const pauseFor = (delayMs: number, signal: AbortSignal): Promise<void> =>
  delay(delayMs, undefined, { signal });

/** Keeps a host running: if it ends by itself it is started again, up to five times in a row. */
export class KeptHost implements RunningHost {
  /** Settles with the id of the host once it serves. A first start that fails is not repeated. */
  readonly ready: Promise<string>;
  readonly #options: KeptHostOptions;
  readonly #stopping = new AbortController();
  #host: StartedHost;
  #stopped: Promise<PserverError | undefined> = Promise.resolve(undefined);
  #hasEnded = false;

  private constructor(options: KeptHostOptions, host: StartedHost) {
    this.#options = options;
    this.#host = host;
    this.ready = host.ready;
  }

  /** Starts a host and keeps it running. */
  static start(options: KeptHostOptions): KeptHost {
    const kept = new KeptHost(options, options.start());
    kept.#stopped = kept.#keep();
    return kept;
  }

  /** Settles when the host has ended for good, with the reason unless it was stopped. */
  get stopped(): Promise<PserverError | undefined> {
    return this.#stopped;
  }

  /** Stops the host in order; it is not started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (!this.#hasEnded) await this.#host.stop();
  }

  async #keep(): Promise<PserverError | undefined> {
    try {
      await this.ready;
    } catch {
      // The caller gets the reason from `ready`, too.
      return await this.#host.stopped;
    }
    for (let failures = 0; ; ) {
      const startedMs = performance.now();
      const reason = await this.#host.stopped;
      this.#hasEnded = true;
      if (this.#stopping.signal.aborted) return undefined;
      if (performance.now() - startedMs >= STEADY_MS) failures = 0;
      const restarted = await this.#restart(reason, failures + 1);
      if (restarted === undefined) return this.#stopping.signal.aborted ? undefined : reason;
      failures = restarted;
    }
  }

  /** Returns the failures in a row until a host serves again; undefined if none does. */
  async #restart(ended: PserverError | undefined, first: number): Promise<number | undefined> {
    const { name, start, onMessage, pause = pauseFor } = this.#options;
    const { restartDelayMs = RESTART_DELAY_MS } = this.#options;
    const { signal } = this.#stopping;
    let what = `has ended${inWords(ended)}`;
    for (let failures = first; failures <= RESTARTS_MAX; failures++) {
      onMessage(`${name} ${what}; starting it again (${failures} of ${RESTARTS_MAX})`);
      try {
        await pause(restartDelayMs * 2 ** (failures - 1), signal);
        this.#host = start();
        this.#hasEnded = false;
        const id = await this.#host.ready;
        onMessage(`${name} is back as ${id}`);
        return failures;
      } catch (error) {
        if (signal.aborted) return undefined;
        what = `did not start${inWords(ensureError(error))}`;
      }
    }
    return undefined;
  }
}

function inWords(reason: PserverError | undefined): string {
  return reason === undefined ? "" : `: ${reason.code}: ${reason.message}`;
}
