import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver bisect`, which finds the update that made a model bad. */
export declare function registerBisect(program: Command, context: CliContext): void;
//# sourceMappingURL=bisect.d.ts.map