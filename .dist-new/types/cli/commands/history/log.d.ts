import { type Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver log`, which prints every update of a job, one a line. */
export declare function registerLog(program: Command, context: CliContext): void;
//# sourceMappingURL=log.d.ts.map