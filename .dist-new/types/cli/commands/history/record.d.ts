import type { Command } from "commander";
import { type CliContext } from "../../context.ts";
/** Adds the command `pserver record`, which writes a span of a job's history into one file. */
export declare function registerRecord(program: Command, context: CliContext): void;
//# sourceMappingURL=record.d.ts.map