import { launchBatch } from "./batch/launch-batch.ts";
import { pbs } from "./batch/pbs.ts";
import { slurm } from "./batch/slurm.ts";
import { checkProgram } from "./command-line.ts";
import type { Launcher } from "./launch.ts";
import { launchLocal } from "./launch-local.ts";
import { describeSsh, launchSsh } from "./launch-ssh.ts";
import { readMachines } from "./machines.ts";
import { type LauncherName, refuseFlags } from "./run-flags.ts";

const BATCH_FLAGS = ["account", "queue", "constraint", "gpus", "maxSimultaneous"] as const;

/** The launcher of each name. */
export const LAUNCHERS_BY_NAME: Readonly<Record<LauncherName, Launcher>> = {
  local: {
    isCommandHere: true,
    check: (_context, flags) =>
      refuseFlags(flags, ["machines", "advertise", "dryRun", ...BATCH_FLAGS]),
    describe: () => Promise.resolve(""),
    start: launchLocal,
  },
  ssh: {
    isCommandHere: false,
    check: (context, flags) => {
      refuseFlags(flags, BATCH_FLAGS);
      readMachines(flags.machines);
      checkProgram(flags, "ssh", context.environment);
    },
    describe: (_context, flags, command) => Promise.resolve(describeSsh(flags, command)),
    start: launchSsh,
  },
  slurm: launchBatch(slurm),
  pbs: launchBatch(pbs),
};
