import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver diff`, which shows how two models differ, at points of the history or in files. */
export declare function registerDiff(program: Command, context: CliContext): void;
//# sourceMappingURL=diff.d.ts.map