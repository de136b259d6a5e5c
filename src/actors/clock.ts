/** Monotonic time and timers; tests put their own in its place. */
export interface Clock {
  /** Milliseconds that never go back, from an arbitrary start. */
  now(): number;
  /** Calls `run` once, `delayMs` from now; the answer cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

/** The process's own clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
