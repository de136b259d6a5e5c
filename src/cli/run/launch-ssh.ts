import type { TrainerCommand } from "./command-line.ts";
import { GUARD, startLine } from "./guard.ts";
import { GuardedProcess } from "./guarded-process.ts";
import { type Launch, trainerOutput, trainerVariables } from "./launch.ts";
import { readMachines } from "./machines.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./running-trainers.ts";
import { shellCommand } from "./shell-words.ts";
import { startTeam } from "./trainer-team.ts";
import { ownVariables, trainerId } from "./trainer-variables.ts";

/** ssh asks for no password, and notices a lost machine within a minute. */
const OPTIONS = [
  "BatchMode=yes",
  "ConnectTimeout=30",
  "ServerAliveInterval=15",
  "ServerAliveCountMax=4",
];

/** The command that runs a guard on a machine. Other users can read it there, so it holds no secrets. */
function sshCommand(machine: string): [program: string, ...args: string[]] {
  const options = OPTIONS.flatMap((option) => ["-o", option]);
  return ["ssh", "-T", ...options, machine, `exec sh -c '${GUARD}'`];
}

/**
 * Starts the trainers on machines in turn, each in the directory of the same path. Commands and variables
 * go through the connection, so that other users cannot read them. A trainer ends with its connection.
 * @throws BAD_VALUE, IO as {@link readMachines}.
 */
export function launchSsh(launch: Launch): RunningTrainers {
  const { flags, command, context } = launch;
  const machines = readMachines(flags.machines);
  const printer = trainerOutput(launch);
  const shared = trainerVariables(launch);
  const start = (rank: number): GuardedProcess => {
    const machine = machines[rank % machines.length] ?? "";
    const own = ownVariables(flags, rank, Math.floor(rank / machines.length));
    return GuardedProcess.start({
      program: sshCommand(machine),
      environment: context.environment,
      startLine: startLine({
        command,
        variables: { ...shared, ...own },
        directory: process.cwd(),
      }),
      rank,
      output: printer,
    });
  };
  return startTeam(launch, {
    nameOf: (rank) => `${trainerId(flags, rank)} on ${machines[rank % machines.length]}`,
    start,
  });
}

/** Describes what would be started: the machine of each rank, and the command. */
export function describeSsh(flags: RunFlags, command: TrainerCommand): string {
  const machines = readMachines(flags.machines);
  const lines = Array.from({ length: flags.instances }, (_, rank) => {
    const machine = machines[rank % machines.length] ?? "";
    return `${trainerId(flags, rank)} on ${machine}: ${shellCommand(command)}`;
  });
  return `${lines.join("\n")}\n`;
}
