import { GUARD, startLine } from "./guard.ts";
import { GuardedProcess } from "./guarded-process.ts";
import {
  inheritedEnvironment,
  type Launch,
  tellThreads,
  trainerOutput,
  trainerVariables,
} from "./launch.ts";
import type { RunningTrainers } from "./running-trainers.ts";
import { freePort, torchVariables } from "./torch-rendezvous.ts";
import { startTeam } from "./trainer-team.ts";
import { ownVariables, placesOn, threadDefaults, trainerId } from "./trainer-variables.ts";

const SHELL = "/bin/sh";
const LOOPBACK = "127.0.0.1";

/** Starts the trainers on this machine. */
export async function launchLocal(launch: Launch): Promise<RunningTrainers> {
  const { flags, command } = launch;
  const printer = trainerOutput(launch);
  const inherited = inheritedEnvironment(launch);
  const shared = trainerVariables(launch);
  const places = placesOn(Array.from({ length: flags.instances }, () => LOOPBACK));
  const meeting =
    flags.torchEnv === true ? { address: LOOPBACK, port: await freePort() } : undefined;
  const environments = places.map((place) => ({
    ...threadDefaults(flags, place),
    ...inherited,
    ...shared,
    ...ownVariables(flags, place, meeting ? torchVariables(place, flags, meeting) : {}),
  }));
  if (inherited["OMP_NUM_THREADS"] === undefined) tellThreads(launch, places);
  return startTeam(launch, {
    nameOf: (rank) => trainerId(flags, rank),
    start: (rank) =>
      GuardedProcess.start({
        program: [SHELL, "-c", GUARD],
        environment: environments[rank] ?? {},
        startLine: startLine({ command, variables: {} }),
        rank,
        output: printer,
      }),
  });
}
