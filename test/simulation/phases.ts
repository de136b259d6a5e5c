import type { MemoryPool } from "./fold-maker.ts";

/** A schedule: first much fails, then nothing does, and in the end the oracles evaluate it. */
export interface Phases<Report> {
  storm(): void;
  calm(): void;
  evaluate(): Report;
}

/** Begins a schedule and runs it to its end; the memories it took go back to the pool. */
export function runPhases<Report>(pool: MemoryPool, begin: () => Phases<Report>): Report {
  try {
    const schedule = begin();
    schedule.storm();
    schedule.calm();
    return schedule.evaluate();
  } finally {
    pool.reclaim();
  }
}
