import type { KeptTrainer, TrainerEnd } from "./kept-trainer.ts";

/** Trainers that run, wherever they do. */
export interface RunningTrainers {
  /**
   * Settles when all have ended well, or with the first that has failed for good: how those ended that
   * have. Rejects with what kept them from running.
   */
  readonly ended: Promise<readonly TrainerEnd[]>;
  /** Ends those that still run; settles when none is left. */
  stop(): Promise<void>;
}

/** Trainers that this process has started, one by one. */
export class TrainerTeam implements RunningTrainers {
  readonly ended: Promise<readonly TrainerEnd[]>;
  readonly #trainers: readonly KeptTrainer[];

  constructor(trainers: readonly KeptTrainer[]) {
    this.#trainers = trainers;
    this.ended = this.#untilEnded();
    this.ended.catch(() => {});
  }

  async stop(): Promise<void> {
    await Promise.all(this.#trainers.map((trainer) => trainer.stop()));
  }

  #untilEnded(): Promise<readonly TrainerEnd[]> {
    const ends: TrainerEnd[] = [];
    return new Promise((resolve, reject) => {
      for (const trainer of this.#trainers) {
        trainer.ended.then((end) => {
          if (end === undefined) return;
          ends.push(end);
          if (end.exitCode !== 0 || ends.length === this.#trainers.length) resolve([...ends]);
        }, reject);
      }
    });
  }
}
