import { GUARD, startLine } from "./guard.ts";
import { GuardedProcess } from "./guarded-process.ts";
import { inheritedEnvironment, type Launch, trainerOutput, trainerVariables } from "./launch.ts";
import type { RunningTrainers } from "./running-trainers.ts";
import { startTeam } from "./trainer-team.ts";
import { ownVariables, trainerId } from "./trainer-variables.ts";

const SHELL = "/bin/sh";

/** Starts the trainers on this machine. */
export function launchLocal(launch: Launch): RunningTrainers {
  const { flags, command } = launch;
  const printer = trainerOutput(launch);
  const environment = { ...inheritedEnvironment(launch), ...trainerVariables(launch) };
  return startTeam(launch, {
    nameOf: (rank) => trainerId(flags, rank),
    start: (rank) =>
      GuardedProcess.start({
        program: [SHELL, "-c", GUARD],
        environment: { ...environment, ...ownVariables(flags, rank, rank) },
        startLine: startLine({ command, variables: {} }),
        rank,
        output: printer,
      }),
  });
}
