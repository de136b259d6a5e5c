import type { CliContext } from "../context.ts";
import type { TrainerCommand } from "./command-line.ts";
import type { Launch } from "./launch.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./running-trainers.ts";

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
