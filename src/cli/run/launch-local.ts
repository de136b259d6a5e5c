import { GUARD, startLine } from "./guard.ts";
import { GuardedProcess } from "./guarded-process.ts";
import { KeptTrainer } from "./kept-trainer.ts";
import { inheritedEnvironment, type Launch, trainerOutput, trainerVariables } from "./launch.ts";
import { TrainerTeam } from "./trainer-team.ts";
import { ownVariables, trainerId } from "./trainer-variables.ts";

const SHELL = "/bin/sh";

/** Starts the trainers on this machine. */
export function launchLocal(launch: Launch): TrainerTeam {
  const { flags, command, output } = launch;
  const printer = trainerOutput(launch);
  const environment = { ...inheritedEnvironment(launch), ...trainerVariables(launch) };
  const ranks = Array.from({ length: flags.instances }, (_, rank) => rank);
  return TrainerTeam.of(
    ranks.map((rank) =>
      KeptTrainer.start({
        rank,
        trainer: trainerId(flags, rank),
        restartsMax: flags.restarts,
        onMessage: (text) => output.warning(text),
        start: () =>
          GuardedProcess.start({
            program: [SHELL, "-c", GUARD],
            environment: { ...environment, ...ownVariables(flags, rank, rank) },
            startLine: startLine({ command, variables: {} }),
            rank,
            output: printer,
          }),
      }),
    ),
  );
}
