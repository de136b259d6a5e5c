import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver set`, which overwrites the values of one parameter. */
export declare function registerSet(program: Command, context: CliContext): void;
//# sourceMappingURL=set.d.ts.map