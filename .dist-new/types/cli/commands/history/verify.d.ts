import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver verify`, which checks whether journal, snapshots and hosts agree. */
export declare function registerVerify(program: Command, context: CliContext): void;
//# sourceMappingURL=verify.d.ts.map