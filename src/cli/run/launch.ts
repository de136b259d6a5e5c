import type { CliContext } from "../context.ts";
import { makePaintRank, type PaintRank, wantsColor } from "../output/colors.ts";
import type { Output, OutputStream } from "../output/output.ts";
import { withoutConnection } from "../up/local-server.ts";
import type { TrainerCommand } from "./command-line.ts";
import type { JobServer } from "./job-server.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./running-trainers.ts";
import { TrainerOutput } from "./trainer-output.ts";
import { sharedVariables, type TrainerPlace, threadDefaults } from "./trainer-variables.ts";

/** Dependencies of a launcher. */
export interface Launch {
  readonly context: CliContext;
  readonly output: Output;
  readonly flags: RunFlags;
  readonly command: TrainerCommand;
  readonly server: JobServer;
}

/** A way to start trainers. */
export interface Launcher {
  /** Whether the command must exist on this machine, because trainers run here or on a shared file system. */
  readonly isCommandHere: boolean;
  /** Checks the flags before anything starts. @throws BAD_VALUE for a flag it lacks, or a missing program. */
  check(context: CliContext, flags: RunFlags): void;
  /** Describes what it would start. */
  describe(context: CliContext, flags: RunFlags, command: TrainerCommand): Promise<string>;
  /** Starts the trainers. @throws what the first start failed for. */
  start(launch: Launch): Promise<RunningTrainers>;
}

/** Variables of every trainer, credentials included; `--env` may override them. */
export function trainerVariables({ flags, command, server }: Launch): Record<string, string> {
  return { ...server.access.credentials, ...sharedVariables(flags, command, server.access.url) };
}

/** The environment of this process without addresses and credentials of a broker. */
export function inheritedEnvironment({ context }: Launch): CliContext["environment"] {
  return withoutConnection(context.environment);
}

/** Says, once for all trainers, that some share a machine and therefore have one thread each. */
export function tellThreads({ output, flags }: Launch, places: readonly TrainerPlace[]): void {
  const limited = places.some((place) => threadDefaults(flags, place)["OMP_NUM_THREADS"]);
  if (!limited) return;
  output.message(
    "trainers that share a machine get OMP_NUM_THREADS=1; --env OMP_NUM_THREADS=N gives each N threads",
  );
}

/** What prints the output of trainers. */
export function trainerOutput({ context, output, flags }: Launch): TrainerOutput {
  const { stdout, stderr, environment } = context;
  const paint = ({ isTTY }: OutputStream): PaintRank =>
    makePaintRank(wantsColor(isTTY === true, environment, flags.color === false));
  return new TrainerOutput({
    stdout,
    stderr,
    paint: { stdout: paint(stdout), stderr: paint(stderr) },
    json: output.json,
    count: flags.instances,
  });
}
