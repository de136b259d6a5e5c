/** How a trainer ended for good. */
export interface TrainerEnd {
  readonly rank: number;
  readonly trainer: string;
  readonly exitCode: number;
  readonly restarts: number;
}

/** Trainers that run, wherever they do. */
export interface RunningTrainers {
  /**
   * Settles when all have ended well, or with the first that has failed for good. Rejects with what kept
   * them from running.
   */
  readonly ended: Promise<void>;
  /** How those ended that have so far, and by themselves: not because they were stopped. */
  ends(): readonly TrainerEnd[];
  /** Ends those that still run; settles when none is left. */
  stop(): Promise<void>;
}
