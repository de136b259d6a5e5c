import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver save`, which has a host write the model into its model directory. */
export declare function registerSave(program: Command, context: CliContext): void;
//# sourceMappingURL=save.d.ts.map