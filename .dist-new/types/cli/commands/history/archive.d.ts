import { type Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver archive`, which copies a job's history into a directory before hosts trim it. */
export declare function registerArchive(program: Command, context: CliContext): void;
//# sourceMappingURL=archive.d.ts.map