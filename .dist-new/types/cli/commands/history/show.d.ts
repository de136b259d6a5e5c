import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver show`, which prints everything about one update. */
export declare function registerShow(program: Command, context: CliContext): void;
//# sourceMappingURL=show.d.ts.map