import type { GuardedProcess } from "./guarded-process.ts";
import { KeptTrainer } from "./kept-trainer.ts";
import type { Launch } from "./launch.ts";
import type { RunningTrainers, TrainerEnd } from "./running-trainers.ts";

/** Trainers that this process has started, each by itself. */
export class TrainerTeam implements RunningTrainers {
  readonly #trainers: readonly KeptTrainer[];
  readonly #ends: TrainerEnd[] = [];
  #ended: Promise<void> = Promise.resolve();

  private constructor(trainers: readonly KeptTrainer[]) {
    this.#trainers = trainers;
  }

  /** A team of these trainers, which run already. */
  static of(trainers: readonly KeptTrainer[]): TrainerTeam {
    const team = new TrainerTeam(trainers);
    team.#ended = team.#untilEnded();
    team.#ended.catch(() => {});
    return team;
  }

  get ended(): Promise<void> {
    return this.#ended;
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

/** Starts the trainers of all ranks, and keeps them running. `nameOf` is for messages. */
export function startTeam(
  { flags, output }: Launch,
  each: { nameOf(rank: number): string; start(rank: number): GuardedProcess },
): TrainerTeam {
  const trainers = Array.from({ length: flags.instances }, (_, rank) =>
    KeptTrainer.start({
      rank,
      trainer: each.nameOf(rank),
      restartsMax: flags.restarts,
      onMessage: (text) => output.warning(text),
      start: () => each.start(rank),
    }),
  );
  return TrainerTeam.of(trainers);
}
