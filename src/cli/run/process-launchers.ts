import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { isLoopback } from "../../http/address.ts";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import { readText } from "../../system/file-errors.ts";
import { supervise } from "../supervise.ts";
import { launchBatch, pbs, slurm } from "./batch-launchers.ts";
import { GUARD, GuardedProcess, inWords, startLine } from "./guarded-process.ts";
import {
  FREE_PORT_PROGRAM,
  freePort,
  inheritedEnvironment,
  type Launch,
  type Launcher,
  ownVariables,
  placesOn,
  type Rendezvous,
  type RunningTrainers,
  reachableAddress,
  shellCommand,
  type TrainerEnd,
  tellThreads,
  threadDefaults,
  torchVariables,
  trainerId,
  trainerOutput,
  trainerVariables,
} from "./launch.ts";
import { type LauncherName, type RunFlags, refuseFlags } from "./run-flags.ts";
import { checkProgram, runProgram, type TrainerCommand } from "./trainer-command.ts";

/** Dependencies of {@link KeptTrainer}. */
export interface KeptTrainerOptions {
  readonly rank: number;
  readonly trainer: string;
  readonly start: () => GuardedProcess;
  /** Restarts in a row. */
  readonly restartsMax: number;
  readonly onMessage: (text: string) => void;
  /** How long it has after SIGINT, SIGTERM, SIGKILL, and the end of the connection to it. */
  readonly waitsMs?: readonly [number, number, number, number];
}

/** How long a trainer has after SIGINT, SIGTERM, SIGKILL, and the end of the connection to it. */
const WAITS_MS = [10_000, 5_000, 5_000, 5_000] as const;

/** Exit codes for "not found" and "cannot be executed": starting it again does not help. */
const NOT_RUNNABLE: readonly number[] = [125, 126, 127];

/** A trainer that is started again under its id when it fails, up to `restartsMax` times in a row. */
export class KeptTrainer {
  readonly #options: KeptTrainerOptions;
  readonly #stopping = new AbortController();
  #process: GuardedProcess;
  #ended: Promise<TrainerEnd | undefined> = Promise.resolve(undefined);

  private constructor(options: KeptTrainerOptions, process: GuardedProcess) {
    this.#options = options;
    this.#process = process;
  }

  /** Starts a trainer and keeps it running. */
  static start(options: KeptTrainerOptions): KeptTrainer {
    const trainer = new KeptTrainer(options, options.start());
    trainer.#ended = trainer.#keep();
    // A caller that stops it may not wait for `ended`.
    trainer.#ended.catch(() => {});
    return trainer;
  }

  /** Settles with how it ended for good; undefined if it was stopped. Rejects with IO if it cannot be run. */
  get ended(): Promise<TrainerEnd | undefined> {
    return this.#ended;
  }

  /** Ends it by SIGINT, then SIGTERM, then SIGKILL, with a pause after each; settles when it has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const [interruptMs, terminateMs, killMs, cutMs] = this.#options.waitsMs ?? WAITS_MS;
    const steps: readonly [send: () => void, waitMs: number][] = [
      [() => this.#process.signal("INT"), interruptMs],
      [() => this.#process.signal("TERM"), terminateMs],
      [() => this.#process.signal("KILL"), killMs],
      [() => this.#process.kill(), cutMs],
    ];
    for (const [send, waitMs] of steps) {
      send();
      if (await this.#endsWithin(waitMs)) return;
    }
    this.#options.onMessage(`${this.#options.trainer} does not end even by SIGKILL`);
  }

  async #endsWithin(waitMs: number): Promise<boolean> {
    const timer = new AbortController();
    const ended = this.ended.then(
      () => true,
      () => true,
    );
    const late = delay(waitMs, false, { signal: timer.signal }).catch(() => false);
    return await Promise.race([ended, late]).finally(() => timer.abort());
  }

  async #keep(): Promise<TrainerEnd | undefined> {
    const { rank, trainer, start, restartsMax, onMessage } = this.#options;
    const ended = await supervise(this.#process, {
      start: async () => {
        this.#process = start();
        return this.#process;
      },
      describe: (exitCode) =>
        exitCode === 0 || NOT_RUNNABLE.includes(exitCode)
          ? undefined
          : `${trainer} ended ${inWords(exitCode)}`,
      restartsMax,
      signal: this.#stopping.signal,
      onMessage,
    });
    return ended && { rank, trainer, exitCode: ended.end, restarts: ended.restarts };
  }
}

/** Starts the trainers of all ranks, each as a process of this one, and keeps them running. */
function startTeam(
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

const SHELL = "/bin/sh";
const LOOPBACK = "127.0.0.1";

/** Starts the trainers on this machine. */
async function launchLocal(launch: Launch): Promise<RunningTrainers> {
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

/** Matches destinations that ssh cannot take for an option. */
const MACHINE = /^[A-Za-z0-9_[][A-Za-z0-9_.:@%[\]-]*$/;

/**
 * Reads the machines of `--machines`: names with commas between them, or a file with one a line, where `#`
 * begins a comment.
 * @throws BAD_VALUE for a name that is none, or if there is none; IO if the file cannot be read.
 */
function readMachines(given: string | undefined): string[] {
  if (given === undefined) {
    const expected = "names with commas, or a file, with --launcher ssh";
    throw mismatch("BAD_VALUE", "--machines", expected, "none");
  }
  const isFile = statSync(given, { throwIfNoEntry: false })?.isFile() === true;
  if (!isFile && given.includes("/"))
    throw mismatch("BAD_VALUE", "--machines", "a file that exists", JSON.stringify(given));
  const lines = isFile ? readText("read the machines", given).split("\n") : given.split(",");
  const names = lines.map((line) => line.replace(/#.*/, "").trim()).filter((line) => line !== "");
  const wrong = names.find((name) => !MACHINE.test(name));
  if (wrong !== undefined)
    throw mismatch("BAD_VALUE", "--machines", "names of machines", JSON.stringify(wrong));
  if (names.length === 0) throw mismatch("BAD_VALUE", "--machines", "at least one machine", "none");
  return names;
}

/** Options of ssh: it asks for no password, and notices a lost machine within a minute. */
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

/**
 * Returns the command that runs a shell program on a machine. Other users can read it there, so it holds no
 * secrets.
 */
function sshCommand(machine: string, shellProgram: string): [program: string, ...args: string[]] {
  const options = OPTIONS.flatMap((option) => ["-o", option]);
  return ["ssh", "-T", ...options, machine, `exec sh -c '${shellProgram}'`];
}

/**
 * Starts the trainers on machines in turn, each in the directory of the same path. Commands and variables
 * go through the connection, so that other users cannot read them. A trainer ends with its connection.
 * @throws BAD_VALUE, IO as {@link readMachines}; IO if rank 0's machine does not say where trainers can meet.
 */
async function launchSsh(launch: Launch): Promise<RunningTrainers> {
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

/** Returns the machine of each rank. */
function machinesOf(flags: RunFlags): string[] {
  const machines = readMachines(flags.machines);
  return Array.from(
    { length: flags.instances },
    (_, rank) => machines[rank % machines.length] ?? "",
  );
}

/** Asks rank 0's machine where torch's trainers meet. */
async function askMeeting({ context, flags }: Launch, machine: string): Promise<Rendezvous> {
  const { environment } = context;
  const answer = await runProgram(sshCommand(machine, MEETING_PROGRAM), {
    environment,
    timeoutMs: MEETING_TIMEOUT_MS,
  });
  const [, reportedAddress = "", port = ""] = /^meet at (\S+) (\d+)$/m.exec(answer.stdout) ?? [];
  if (port === "") {
    const said = answer.stderr.trim() || `exit code ${answer.code}`;
    const message = `${machine}, the machine of rank 0, did not say where trainers can meet: ${said}`;
    throw new PserverError("IO", message, { machine });
  }
  const name = machine.replace(/^.*@/, "").replace(/^\[(.*)\]$/, "$1");
  const address = reportedAddress === "unknown" ? name : reportedAddress;
  if (!isLoopback(address)) return { address, port: Number(port) };
  // Rank 0 runs on this machine.
  return { address: (await reachableAddress(flags.advertise)).advertised, port: Number(port) };
}

/** Describes what would be started: the machine of each rank, and the command. */
function describeSsh(flags: RunFlags, command: TrainerCommand): string {
  const lines = machinesOf(flags).map(
    (machine, rank) => `${trainerId(flags, rank)} on ${machine}: ${shellCommand(command)}`,
  );
  return `${lines.join("\n")}\n`;
}

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
      refuseFlags(flags, ["noToken", ...BATCH_FLAGS]);
      readMachines(flags.machines);
      checkProgram(flags, "ssh", context.environment);
    },
    describe: (_context, flags, command) => Promise.resolve(describeSsh(flags, command)),
    start: launchSsh,
  },
  slurm: launchBatch(slurm),
  pbs: launchBatch(pbs),
};
