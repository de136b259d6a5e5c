import { PserverError } from "../../protocol/errors.ts";
import type { TrainerCommand } from "./command-line.ts";
import { GUARD, startLine } from "./guard.ts";
import { GuardedProcess } from "./guarded-process.ts";
import { type Launch, tellThreads, trainerOutput, trainerVariables } from "./launch.ts";
import { readMachines } from "./machines.ts";
import { isLoopback, reachableAddress } from "./reachable-address.ts";
import type { RunFlags } from "./run-flags.ts";
import { runProgram } from "./run-program.ts";
import type { RunningTrainers } from "./running-trainers.ts";
import { shellCommand } from "./shell-words.ts";
import { FREE_PORT_PROGRAM, type Rendezvous, torchVariables } from "./torch-rendezvous.ts";
import { startTeam } from "./trainer-team.ts";
import { ownVariables, placesOn, threadDefaults, trainerId } from "./trainer-variables.ts";

/** ssh asks for no password, and notices a lost machine within a minute. */
const OPTIONS = [
  "BatchMode=yes",
  "ConnectTimeout=30",
  "ServerAliveInterval=15",
  "ServerAliveCountMax=4",
];

const MEETING_TIMEOUT_MS = 60_000;

/** Prints the address at which ssh has reached the machine, where ssh says it, and a free port. */
const MEETING_PROGRAM = [
  FREE_PORT_PROGRAM,
  "set -- $SSH_CONNECTION",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  'echo "meet at ${3:-unknown} $port"',
].join("; ");

/** The command that runs a shell program on a machine. Other users can read it there, so it holds no secrets. */
function sshCommand(machine: string, shellProgram: string): [program: string, ...args: string[]] {
  const options = OPTIONS.flatMap((option) => ["-o", option]);
  return ["ssh", "-T", ...options, machine, `exec sh -c '${shellProgram}'`];
}

/**
 * Starts the trainers on machines in turn, each in the directory of the same path. Commands and variables
 * go through the connection, so that other users cannot read them. A trainer ends with its connection.
 * @throws BAD_VALUE, IO as {@link readMachines}; IO if rank 0's machine does not say where trainers can meet.
 */
export async function launchSsh(launch: Launch): Promise<RunningTrainers> {
  const { flags, command, context } = launch;
  const machines = machinesOf(flags);
  const places = placesOn(machines);
  const printer = trainerOutput(launch);
  const shared = trainerVariables(launch);
  const meeting = flags.torchEnv === true ? await askMeeting(launch, machines[0] ?? "") : undefined;
  const starts = places.map((place) => ({
    program: sshCommand(machines[place.rank] ?? "", GUARD),
    line: startLine({
      command,
      defaults: threadDefaults(flags, place),
      variables: {
        ...shared,
        ...ownVariables(flags, place, meeting ? torchVariables(place, flags, meeting) : {}),
      },
      directory: process.cwd(),
    }),
  }));
  tellThreads(launch, places);
  return startTeam(launch, {
    nameOf: (rank) => `${trainerId(flags, rank)} on ${machines[rank]}`,
    start: (rank) => {
      const { program, line } = starts[rank] as (typeof starts)[number];
      const { environment } = context;
      return GuardedProcess.start({ program, environment, startLine: line, rank, output: printer });
    },
  });
}

/** The machine of each rank. */
function machinesOf(flags: RunFlags): string[] {
  const machines = readMachines(flags.machines);
  return Array.from(
    { length: flags.instances },
    (_, rank) => machines[rank % machines.length] ?? "",
  );
}

/** Where torch's trainers meet, as rank 0's machine says. */
async function askMeeting({ context, flags }: Launch, machine: string): Promise<Rendezvous> {
  const { environment } = context;
  const answer = await runProgram(sshCommand(machine, MEETING_PROGRAM), {
    environment,
    timeoutMs: MEETING_TIMEOUT_MS,
  });
  const [, told = "", port = ""] = /^meet at (\S+) (\d+)$/m.exec(answer.stdout) ?? [];
  if (port === "") {
    const said = answer.stderr.trim() || `exit code ${answer.code}`;
    const message = `${machine}, the machine of rank 0, did not say where trainers can meet: ${said}`;
    throw new PserverError("IO", message, { machine });
  }
  const name = machine.replace(/^.*@/, "").replace(/^\[(.*)\]$/, "$1");
  const address = told === "unknown" ? name : told;
  if (!isLoopback(address)) return { address, port: Number(port) };
  // Rank 0 runs on this machine.
  return { address: (await reachableAddress(flags.advertise)).advertised, port: Number(port) };
}

/** Describes what would be started: the machine of each rank, and the command. */
export function describeSsh(flags: RunFlags, command: TrainerCommand): string {
  const lines = machinesOf(flags).map(
    (machine, rank) => `${trainerId(flags, rank)} on ${machine}: ${shellCommand(command)}`,
  );
  return `${lines.join("\n")}\n`;
}
