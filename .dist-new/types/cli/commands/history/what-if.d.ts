import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver what-if`, which computes the model as it would have been with other updates. */
export declare function registerWhatIf(program: Command, context: CliContext): void;
//# sourceMappingURL=what-if.d.ts.map