import type { CliContext } from "../context.ts";
import type { TrainerCommand } from "./command-line.ts";
import type { Launch } from "./launch.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunningTrainers } from "./running-trainers.ts";

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
