import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Command } from "commander";
import type { HostReport } from "../actors/host/host-report.ts";
import { PserverError } from "../protocol/errors.ts";
import { fillSection, HELP_COLUMNS } from "./output/help-text.ts";
import { Output, type OutputFlags, type OutputStream } from "./output/output.ts";
import { unlessAborted } from "./signals.ts";

/** The stream from which answers to questions are read; questions are asked only if it is a terminal. */
type InputStream = Readable & { readonly isTTY?: boolean };

/** What a command tells the process that has started it with a channel: how its host is, or how far its work is. */
export type StarterMessage = { readonly report: HostReport } | { readonly progress: string };

/** The process that a command runs in. */
export interface CliProcess {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
  /**
   * Called by a command that serves: the process then lets it stop in order when its output has no reader any
   * more.
   */
  readonly onServer?: () => void;
  /** Sends plain data to the command that has started this process with a channel; absent if none has. */
  readonly tellStarter?: (message: StarterMessage) => Promise<void>;
}

/** Dependencies of a command. */
export interface CliContext extends CliProcess {
  /** Sets the exit code of a command that does not throw: one of `EXIT`, or a trainer's. */
  setExitCode(code: number): void;
}

/** Opens the printer of a command that ends by itself; whoever has started it with a channel is told its progress. */
export function openOutput(context: CliContext, flags: OutputFlags): Output {
  const { stdout, stderr, environment, tellStarter } = context;
  const onProgress = tellStarter && ((progress: string): unknown => tellStarter({ progress }));
  return Output.open({ stdout, stderr, onProgress }, environment, flags);
}

/**
 * Opens the printer of a command that serves: each message begins with the time, as in a log. Tells the process
 * that it is a server.
 */
export function openLog(context: CliContext, flags: OutputFlags): Output {
  context.onServer?.();
  return Output.open(context, context.environment, flags, () => new Date());
}

/**
 * Adds sections to the end of a command's help: titles, with text that is broken anew to the width of the terminal. The
 * lines of `Examples` are printed unchanged.
 */
export function addHelp(
  command: Command,
  sections: Readonly<Record<string, readonly string[]>>,
): void {
  command.addHelpText("after", () => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? HELP_COLUMNS;
    const texts = Object.entries(sections).map(([title, lines]) => {
      const shown = title === "Examples" ? lines : fillSection(lines, width);
      return `\n${title}:\n${shown.join("\n")}`;
    });
    return texts.join("\n");
  });
}

/**
 * Asks a person a question on the message stream; returns the line of the answer without blanks around
 * it, "" at the end of the input.
 * @throws the signal's reason at Ctrl-C.
 */
export async function askLine(
  { stdin, stderr, signal }: Pick<CliContext, "stdin" | "stderr" | "signal">,
  question: string,
): Promise<string> {
  // `terminal: false`: the terminal itself edits the line and turns Ctrl-C into a signal.
  const lines = createInterface({ input: stdin, terminal: false });
  try {
    stderr.write(`${question} `);
    const answer = new Promise<string>((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
    });
    return (await unlessAborted(signal, answer)).trim();
  } finally {
    lines.close();
  }
}

/**
 * Asks a person a yes-or-no question on the message stream. Anything but `y` or `yes`, and the end of the
 * input, means no.
 * @throws BAD_VALUE, naming `--yes`, if the input is no terminal; the signal's reason at Ctrl-C.
 */
export async function confirm(context: CliContext, question: string): Promise<boolean> {
  if (context.stdin.isTTY !== true) {
    throw new PserverError("BAD_VALUE", `${question} Nobody can be asked here: give --yes`);
  }
  return /^y(es)?$/i.test(await askLine(context, `${question} [y/N]`));
}

/**
 * Returns the program and first arguments that start another `pserver`, whichever of the package's programs
 * runs now.
 */
export function thisCommand(): [program: string, ...args: string[]] {
  const main = `pserver${extname(import.meta.filename)}`;
  // Next to this file in the sources, and next to all chunks in the package.
  return [process.execPath, ...process.execArgv, join(import.meta.dirname, main)];
}
