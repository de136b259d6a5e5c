import { type Clock, systemClock } from "./clock.ts";

/** Repeats work, one round at a time, with a pause after each, until stopped for good. */
export class Rounds {
  readonly #work: () => Promise<number>;
  readonly #clock: Clock;
  #isStarted = false;
  #isStopped = false;
  #isQueued = false;
  #round: Promise<void> = Promise.resolve();
  #cancelPause: () => void = () => undefined;

  /** `work` is one round; it returns how many milliseconds to pause after it, and must not throw. */
  constructor(work: () => Promise<number>, clock: Clock = systemClock) {
    this.#work = work;
    this.#clock = clock;
  }

  /** Begins with a round at once, or after a pause; settles after a round that begins at once. */
  async start(afterMs = 0): Promise<void> {
    if (this.#isStarted) return await this.#round;
    this.#isStarted = true;
    if (afterMs > 0) this.#pause(afterMs);
    else await this.soon();
  }

  /** Ends the pause: a round begins as soon as none is under way. Does nothing before the start. */
  soon(): Promise<void> {
    if (this.#isStarted && !this.#isQueued) {
      this.#isQueued = true;
      this.#cancelPause();
      this.#round = this.#round.then(() => this.#run());
    }
    return this.#round;
  }

  /** Begins no further round, and waits for one under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelPause();
    await this.#round;
  }

  async #run(): Promise<void> {
    this.#isQueued = false;
    if (this.#isStopped) return;
    const pauseMs = await this.#work();
    if (!this.#isQueued) this.#pause(pauseMs);
  }

  #pause(pauseMs: number): void {
    if (this.#isStopped) return;
    this.#cancelPause = this.#clock.after(pauseMs, () => void this.soon());
  }
}
