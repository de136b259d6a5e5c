/** How a trainer ended for good. */
export interface TrainerEnd {
  readonly rank: number;
  readonly trainer: string;
  readonly exitCode: number;
  readonly restarts: number;
}

/** Trainers that were started, on any machine. */
export interface RunningTrainers {
  /**
   * Settles when all have ended with exit code 0, or when the first has failed for good. Rejects with the
   * error that kept them from running.
   */
  readonly ended: Promise<void>;
  /** The trainers that have ended by themselves so far, not because they were stopped. */
  ends(): readonly TrainerEnd[];
  /** Stops the trainers that still run; settles when none is left. */
  stop(): Promise<void>;
}
