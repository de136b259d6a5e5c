import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver blame`, which shows which updates moved an element, and by how much. */
export declare function registerBlame(program: Command, context: CliContext): void;
//# sourceMappingURL=blame.d.ts.map