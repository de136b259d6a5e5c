import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver up`, which runs a broker and hosts on this machine until Ctrl-C. */
export declare function registerUp(program: Command, context: CliContext): void;
//# sourceMappingURL=up.d.ts.map