import { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver completion`, which writes a script that completes commands and flags. */
export declare function registerCompletion(program: Command, context: CliContext): void;
/**
 * Adds the command behind the completion scripts: it prints the names of one kind, one per line, of the job and
 * broker in the words of the command line. Prints nothing if they cannot be listed in time.
 */
export declare function registerCompleteNames(program: Command, context: CliContext): void;
//# sourceMappingURL=completion.d.ts.map