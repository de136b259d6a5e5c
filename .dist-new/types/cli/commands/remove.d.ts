import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver remove`, which removes a job for good. */
export declare function registerRemove(program: Command, context: CliContext): void;
//# sourceMappingURL=remove.d.ts.map