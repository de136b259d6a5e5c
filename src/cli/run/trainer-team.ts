import type { KeptTrainer } from "./kept-trainer.ts";

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

/** Trainers that this process has started, one by one. */
export class TrainerTeam implements RunningTrainers {
  readonly ended: Promise<void>;
  readonly #trainers: readonly KeptTrainer[];
  readonly #ends: TrainerEnd[] = [];

  constructor(trainers: readonly KeptTrainer[]) {
    this.#trainers = trainers;
    this.ended = this.#untilEnded();
    this.ended.catch(() => {});
  }

  ends(): readonly TrainerEnd[] {
    return this.#ends;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#trainers.map((trainer) => trainer.stop()));
  }

  #untilEnded(): Promise<void> {
    return new Promise((resolve, reject) => {
      for (const trainer of this.#trainers) {
        trainer.ended.then((end) => {
          if (end === undefined) return;
          this.#ends.push(end);
          if (end.exitCode !== 0 || this.#ends.length === this.#trainers.length) resolve();
        }, reject);
      }
    });
  }
}
