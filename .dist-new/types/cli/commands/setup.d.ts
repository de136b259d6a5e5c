import type { Command } from "commander";
import { type CliContext } from "../context.ts";
/** Adds the command `pserver setup`, which provides the broker that `pserver up` starts. */
export declare function registerSetup(program: Command, context: CliContext): void;
//# sourceMappingURL=setup.d.ts.map