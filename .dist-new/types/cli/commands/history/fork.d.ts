import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/**
 * Adds the command `pserver fork`, which makes a new job that begins with the state of a job at a point of its
 * history.
 */
export declare function registerFork(program: Command, context: CliContext): void;
//# sourceMappingURL=fork.d.ts.map