import { CommanderError } from "commander";
import type { CliProcess } from "./context.ts";
import { makePaint, wantsColor } from "./output/colors.ts";
import { messageWidth } from "./output/output.ts";
import { createProgram } from "./program.ts";
import { EXIT, type ReportStyle, reportError } from "./report-error.ts";

/** Commands that only run as servers: their last message begins with the time, too. */
const SERVERS: readonly string[] = ["up", "host", "run", "ui"];

/** Runs one command line, without the program's name; returns the exit code and never throws. */
export async function runCli(args: readonly string[], cliProcess: CliProcess): Promise<number> {
  const style = errorStyle(args, cliProcess);
  let exitCode: number = EXIT.ok;
  const context = {
    ...cliProcess,
    setExitCode: (code: number): void => {
      exitCode = code;
    },
  };
  let command = "";
  try {
    const program = createProgram(context, style);
    program.hook("preAction", (_, action) => {
      command = action.name();
    });
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has printed the error. Help and version arrive as errors, too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.badArguments;
    const time = SERVERS.includes(command) ? { time: new Date().toISOString() } : {};
    const report = reportError(error, { ...style, command, ...time });
    cliProcess.stderr.write(`${report.text}\n`);
    return report.exitCode;
  }
}

/**
 * Decides how errors of a command line are reported. Some are reported before it is parsed, so its flags are
 * looked for here.
 */
export function errorStyle(
  args: readonly string[],
  { stderr, environment }: Pick<CliProcess, "stderr" | "environment">,
): ReportStyle {
  // Arguments after -- belong to a trainer.
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  const json = own.some((arg) => arg === "--json" || arg === "-j");
  const colored = wantsColor(stderr.isTTY === true, environment, own.includes("--no-color"));
  return { json, paint: makePaint(colored), command: "", width: messageWidth(stderr) };
}
