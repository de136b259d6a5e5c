import { type Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver plot`, which draws a number of the notes, or the norms of updates, over time. */
export declare function registerPlot(program: Command, context: CliContext): void;
//# sourceMappingURL=plot.d.ts.map