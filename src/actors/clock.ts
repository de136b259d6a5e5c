/** Monotonic time and timers; tests replace it. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never decreases. */
  now(): number;
  /** Calls `run` once, `delayMs` from now; the returned function cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

/** The clock of the process. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
