import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/actors/concurrent.ts";

/** A clock that stands still until it is told to go on. */
export class FakeClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { dueMs: this.#nowMs + delayMs, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that are waiting. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Goes on by `ms` without running any timer, as for a process that is stopped. */
  pause(ms: number): void {
    this.#nowMs += ms;
  }

  /** Goes on by `ms`, running what falls due in order and letting each finish its promises. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await setImmediate();
    for (;;) {
      const due = [...this.#timers]
        .filter(({ dueMs }) => dueMs <= untilMs)
        .sort((a, b) => a.dueMs - b.dueMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.dueMs);
      due.run();
      await setImmediate();
    }
    this.#nowMs = untilMs;
  }
}
