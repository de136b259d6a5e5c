import { CommanderError } from "commander";
import type { CliProcess } from "./context.ts";
import { EXIT } from "./exit-codes.ts";
import { makePaint, wantsColor } from "./output/colors.ts";
import { messageWidth } from "./output/output.ts";
import { reportError } from "./output/report-error.ts";
import { createProgram } from "./program.ts";

/** Commands that run as servers: their messages begin with the time. */
const SERVERS: readonly string[] = ["up", "host", "run", "legion-gateway"];

/** Runs one command line, without the program's name; returns the exit code and never throws. */
export async function runCli(args: readonly string[], cliProcess: CliProcess): Promise<number> {
  const { stderr, environment } = cliProcess;
  // Errors of the command line are reported before it is parsed, so these flags are looked for here.
  // Arguments after -- belong to a trainer.
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  const json = own.some((arg) => arg === "--json" || arg === "-j");
  const colored = wantsColor(stderr.isTTY === true, environment, own.includes("--no-color"));
  const paint = makePaint(colored);
  let exitCode: number = EXIT.ok;
  const context = {
    ...cliProcess,
    setExitCode: (code: number): void => {
      exitCode = code;
    },
  };
  let command = "";
  try {
    const program = createProgram(context, { json, paint });
    program.hook("preAction", (_, action) => {
      command = action.name();
    });
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has printed the error. Help and version arrive as errors, too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.badArguments;
    const time = SERVERS.includes(command) ? { time: new Date().toISOString() } : {};
    const style = { json, paint, command, width: messageWidth(stderr), ...time };
    const report = reportError(error, style);
    stderr.write(`${report.text}\n`);
    return report.exitCode;
  }
}
