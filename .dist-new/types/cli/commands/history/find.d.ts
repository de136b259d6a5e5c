import { type Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver find`, which finds updates that stand out. */
export declare function registerFind(program: Command, context: CliContext): void;
//# sourceMappingURL=find.d.ts.map