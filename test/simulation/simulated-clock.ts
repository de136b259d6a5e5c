import type { Clock } from "../../src/actors/concurrent.ts";
import type { Random } from "./random.ts";

/** Timers that fire in any order, or never. */
export class SimulatedClock implements Clock {
  readonly #random: Random;
  readonly #timers: Set<() => void> = new Set();

  constructor(random: Random) {
    this.#random = random;
  }

  now(): number {
    return 0;
  }

  after(_delayMs: number, run: () => void): () => void {
    this.#timers.add(run);
    return () => this.#timers.delete(run);
  }

  /** Fires any one of the timers. */
  fireOne(): void {
    const run = this.#random.pick([...this.#timers]);
    if (run === undefined) return;
    this.#timers.delete(run);
    run();
  }
}
