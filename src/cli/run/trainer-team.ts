import type { GuardedProcess } from "./guarded-process.ts";
import { KeptTrainer } from "./kept-trainer.ts";
import type { Launch } from "./launch.ts";
import type { RunningTrainers, TrainerEnd } from "./running-trainers.ts";

/** Starts the trainers of all ranks, each as a process of this one, and keeps them running. */
export function startTeam(
  { flags, output }: Launch,
  /** `nameOf` is for messages. */
  each: { nameOf(rank: number): string; start(rank: number): GuardedProcess },
): RunningTrainers {
  const trainers = Array.from({ length: flags.instances }, (_, rank) =>
    KeptTrainer.start({
      rank,
      trainer: each.nameOf(rank),
      restartsMax: flags.restarts,
      onMessage: (text) => output.warning(text),
      start: () => each.start(rank),
    }),
  );
  const ends: TrainerEnd[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    for (const trainer of trainers) {
      trainer.ended.then((end) => {
        if (end === undefined) return;
        ends.push(end);
        if (end.exitCode !== 0 || ends.length === trainers.length) resolve();
      }, reject);
    }
  });
  ended.catch(() => {});
  const stop = async (): Promise<void> => {
    await Promise.all(trainers.map((trainer) => trainer.stop()));
  };
  return { ended, ends: () => ends, stop };
}
