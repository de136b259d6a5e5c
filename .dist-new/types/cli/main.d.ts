import type { CliProcess } from "./context.ts";
/** Runs a command line as the work of this process, and ends the process with its exit code. */
export declare function runMain(run: (args: readonly string[], cliProcess: CliProcess) => Promise<number>): Promise<never>;
//# sourceMappingURL=main.d.ts.map