import { setTimeout as delay } from "node:timers/promises";
import { STEADY_MS } from "../up/restarts.ts";
import { inWords } from "./exit-code.ts";
import type { GuardedProcess } from "./guarded-process.ts";
import type { TrainerEnd } from "./running-trainers.ts";

/** Dependencies of {@link KeptTrainer}. */
export interface KeptTrainerOptions {
  readonly rank: number;
  readonly trainer: string;
  readonly start: () => GuardedProcess;
  /** Restarts in a row. */
  readonly restartsMax: number;
  readonly onMessage: (text: string) => void;
  /** Pause before the first restart; it doubles with each that fails. */
  readonly restartDelayMs?: number;
  /** How long it has after SIGINT, SIGTERM, SIGKILL, and the end of the connection to it. */
  readonly waitsMs?: readonly [number, number, number, number];
}

const RESTART_DELAY_MS = 500;
const RESTART_DELAY_MS_MAX = 30_000;

/** How long a trainer has after SIGINT, SIGTERM, SIGKILL, and the end of the connection to it. */
const WAITS_MS = [10_000, 5_000, 5_000, 5_000] as const;

/** Exit codes for "not found" and "cannot be executed": starting it again does not help. */
const NOT_RUNNABLE: readonly number[] = [125, 126, 127];

/** A trainer that is started again under its id when it fails, up to `restartsMax` times in a row. */
export class KeptTrainer {
  readonly #options: KeptTrainerOptions;
  readonly #stopping = new AbortController();
  #process: GuardedProcess;
  #ended: Promise<TrainerEnd | undefined> = Promise.resolve(undefined);

  private constructor(options: KeptTrainerOptions, process: GuardedProcess) {
    this.#options = options;
    this.#process = process;
  }

  /** Starts a trainer and keeps it running. */
  static start(options: KeptTrainerOptions): KeptTrainer {
    const kept = new KeptTrainer(options, options.start());
    kept.#ended = kept.#keep();
    // A caller that stops it may not wait for `ended`.
    kept.#ended.catch(() => {});
    return kept;
  }

  /** Settles with how it ended for good; undefined if it was stopped. Rejects with IO if it cannot be run. */
  get ended(): Promise<TrainerEnd | undefined> {
    return this.#ended;
  }

  /** Ends it by SIGINT, then SIGTERM, then SIGKILL, with a pause after each; settles when it has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const [interruptMs, terminateMs, killMs, cutMs] = this.#options.waitsMs ?? WAITS_MS;
    const steps: readonly [send: () => void, waitMs: number][] = [
      [() => this.#process.signal("INT"), interruptMs],
      [() => this.#process.signal("TERM"), terminateMs],
      [() => this.#process.signal("KILL"), killMs],
      [() => this.#process.kill(), cutMs],
    ];
    for (const [send, waitMs] of steps) {
      send();
      if (await this.#endsWithin(waitMs)) return;
    }
    this.#options.onMessage(`${this.#options.trainer} does not end even by SIGKILL`);
  }

  async #endsWithin(waitMs: number): Promise<boolean> {
    const timer = new AbortController();
    const ended = this.ended.then(
      () => true,
      () => true,
    );
    const late = delay(waitMs, false, { signal: timer.signal }).catch(() => false);
    return await Promise.race([ended, late]).finally(() => timer.abort());
  }

  async #keep(): Promise<TrainerEnd | undefined> {
    const { rank, trainer, start, restartsMax, onMessage } = this.#options;
    const { restartDelayMs = RESTART_DELAY_MS } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0, restarts = 0; ; restarts++) {
      const startedMs = performance.now();
      const exitCode = await this.#process.ended;
      if (signal.aborted) return undefined;
      if (performance.now() - startedMs >= STEADY_MS) failures = 0;
      const isOver = exitCode === 0 || NOT_RUNNABLE.includes(exitCode) || failures >= restartsMax;
      if (isOver) return { rank, trainer, exitCode, restarts };
      failures += 1;
      onMessage(
        `${trainer} ended ${inWords(exitCode)}; starting it again (${failures} of ${restartsMax})`,
      );
      try {
        const pauseMs = Math.min(restartDelayMs * 2 ** (failures - 1), RESTART_DELAY_MS_MAX);
        await delay(pauseMs, undefined, { signal });
      } catch {
        return undefined;
      }
      this.#process = start();
    }
  }
}
