import type { DemoProcesses } from "./demo-processes.ts";
import type { Display } from "./display.ts";
import type { Evaluation } from "./network.ts";
import type { Observer } from "./observer.ts";
import type { Team } from "./team.ts";

/** What a {@link Watch} shows, and where. */
export interface WatchOptions {
  readonly display: Display;
  readonly team: Team;
  readonly observer: Observer;
  readonly updatesWanted: number;
  /** Fails when the weights cannot be scored; when it has failed, nothing more is shown. */
  readonly processes: Pick<DemoProcesses, "fail" | "failed">;
}

const SHOW_INTERVAL_MS = 250;
const OBSERVE_INTERVAL_MS = 2_000;

/** Shows the state of the training four times a second, and scores the weights every two seconds. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #startedMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #evaluation: Evaluation | undefined;
  #observedMs = Number.NEGATIVE_INFINITY;
  #observing = false;

  /** Begins to watch at once. */
  constructor(options: WatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#tick(), SHOW_INTERVAL_MS);
    options.processes.failed.catch(() => clearInterval(this.#timer));
  }

  /** Time for which training has run. */
  get elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** Shows the end, with the last score, and leaves it on the screen. */
  end(evaluation: Evaluation): void {
    clearInterval(this.#timer);
    this.#evaluation = evaluation;
    this.#show();
    this.#options.display.finish();
  }

  #tick(): void {
    this.#show();
    if (this.#observing || this.elapsedMs - this.#observedMs < OBSERVE_INTERVAL_MS) return;
    this.#observedMs = this.elapsedMs;
    this.#observe().catch(this.#options.processes.fail);
  }

  /** Waits while a host is replaced; the display continues meanwhile. */
  async #observe(): Promise<void> {
    this.#observing = true;
    const { evaluation } = await this.#options.observer.observe();
    this.#evaluation = evaluation;
    this.#observing = false;
  }

  #show(): void {
    const { display, team, updatesWanted } = this.#options;
    display.show({
      elapsedMs: this.elapsedMs,
      updates: team.updates,
      updatesWanted,
      evaluation: this.#evaluation,
      trainers: team.progress,
    });
  }
}
