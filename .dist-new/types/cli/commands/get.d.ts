import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver get`, which prints the values of one parameter. */
export declare function registerGet(program: Command, context: CliContext): void;
//# sourceMappingURL=get.d.ts.map