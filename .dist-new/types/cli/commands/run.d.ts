import { type Command } from "commander";
import { type CliContext } from "../context.ts";
/**
 * Adds the command `pserver run`, which runs trainers to their end, with a new server or one that already runs.
 */
export declare function registerRun(program: Command, context: CliContext): void;
//# sourceMappingURL=run.d.ts.map