import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver replay`, which rebuilds the model of a job as it was at a point of its history. */
export declare function registerReplay(program: Command, context: CliContext): void;
//# sourceMappingURL=replay.d.ts.map