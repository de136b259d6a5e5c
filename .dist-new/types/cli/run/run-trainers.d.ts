import type { CliContext } from "../context.ts";
import type { Output } from "../output/output.ts";
import { type TrainerEnd } from "./launch.ts";
import { type RunFlags } from "./run-flags.ts";
import { type TrainerCommand } from "./trainer-command.ts";
/** Writes one line for each way of ending, with the ranks that ended so. */
export declare function endLines(ends: readonly TrainerEnd[], instances: number): string[];
/**
 * Runs trainers to their end, on a new server or one that already runs; then saves the model, if that is
 * asked for, and stops the server. The exit code is the highest of the trainers that ended by themselves.
 * @throws the error that kept it from starting; why no broker or no host is left; ABORTED by Ctrl-C or the
 * wall time; why the model could not be saved. No trainer runs any more then.
 */
export declare function runTrainers(context: CliContext, output: Output, flags: RunFlags, command: TrainerCommand): Promise<void>;
//# sourceMappingURL=run-trainers.d.ts.map