import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver host`, which runs one more host of a job, on a broker that runs already. */
export declare function registerHost(program: Command, context: CliContext): void;
//# sourceMappingURL=host.d.ts.map