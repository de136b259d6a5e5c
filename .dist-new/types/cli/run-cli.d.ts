import type { CliProcess } from "./context.ts";
import { type ReportStyle } from "./report-error.ts";
/** Runs one command line, without the program's name; returns the exit code and never throws. */
export declare function runCli(args: readonly string[], cliProcess: CliProcess): Promise<number>;
/**
 * Decides how errors of a command line are reported. Some are reported before it is parsed, so its flags are
 * looked for here.
 */
export declare function errorStyle(args: readonly string[], { stderr, environment }: Pick<CliProcess, "stderr" | "environment">): ReportStyle;
//# sourceMappingURL=run-cli.d.ts.map