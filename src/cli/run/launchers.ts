import type { CliContext } from "../context.ts";
import { launchBatch } from "./batch/launch-batch.ts";
import { pbs } from "./batch/pbs.ts";
import { slurm } from "./batch/slurm.ts";
import { checkProgram, type TrainerCommand } from "./command-line.ts";
import type { Launch } from "./launch.ts";
import { launchLocal } from "./launch-local.ts";
import { describeSsh, launchSsh } from "./launch-ssh.ts";
import { readMachines } from "./machines.ts";
import { type LauncherName, type RunFlags, refuseFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./trainer-team.ts";

/** A way to start trainers. */
export interface Launcher {
  /** Whether the command must be found from this directory: then all machines share it, or there is one. */
  readonly isCommandHere: boolean;
  /** @throws BAD_VALUE for flags that it does not have, or a program that is missing; nothing has started. */
  check(context: CliContext, flags: RunFlags): void;
  /** What it would start, as text. */
  describe(context: CliContext, flags: RunFlags, command: TrainerCommand): Promise<string>;
  /** Starts the trainers. @throws what the first start failed for. */
  start(launch: Launch): Promise<RunningTrainers>;
}

const BATCH_FLAGS = ["account", "queue", "constraint", "gpus", "maxSimultaneous"] as const;

const LAUNCHERS_BY_NAME: Readonly<Record<LauncherName, Launcher>> = {
  local: {
    isCommandHere: true,
    check: (_context, flags) =>
      refuseFlags(flags, ["machines", "advertise", "dryRun", ...BATCH_FLAGS]),
    describe: () => Promise.resolve(""),
    start: (launch) => Promise.resolve(launchLocal(launch)),
  },
  ssh: {
    isCommandHere: false,
    check: (context, flags) => {
      refuseFlags(flags, BATCH_FLAGS);
      readMachines(flags.machines);
      checkProgram(flags, "ssh", context.environment);
    },
    describe: (_context, flags, command) => Promise.resolve(describeSsh(flags, command)),
    start: (launch) => Promise.resolve(launchSsh(launch)),
  },
  slurm: launchBatch(slurm),
  pbs: launchBatch(pbs),
};

/** The launcher of a name. */
export function findLauncher(name: LauncherName): Launcher {
  return LAUNCHERS_BY_NAME[name];
}
