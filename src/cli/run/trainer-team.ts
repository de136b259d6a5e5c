import type { KeptTrainer } from "./kept-trainer.ts";
import type { RunningTrainers, TrainerEnd } from "./running-trainers.ts";

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
