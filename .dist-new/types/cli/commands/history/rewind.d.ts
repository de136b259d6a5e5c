import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver rewind`, which lets a job go on from an earlier point, in place. */
export declare function registerRewind(program: Command, context: CliContext): void;
//# sourceMappingURL=rewind.d.ts.map