import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import { fileError } from "../system/file-errors.ts";
import type { CliProcess, StarterMessage } from "./context.ts";
import { EXIT, reportError } from "./report-error.ts";
import { errorStyle } from "./run-cli.ts";
import { takeIgnoredSignals, watchInterrupts } from "./signals.ts";

/** Runs a command line as the work of this process, and ends the process with its exit code. */
export async function runMain(
  run: (args: readonly string[], cliProcess: CliProcess) => Promise<number>,
): Promise<never> {
  const ignored = takeIgnoredSignals();
  const { stdin, stdout, stderr, env: environment } = process;
  const args = process.argv.slice(2);
  let exitCode: number | undefined;
  let isServer = false;
  let isToldOfOutput = false;
  const readerGone = new AbortController();

  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") {
      // A reader such as `head` may close the pipe early, which is no failure.
      if (!isServer || exitCode !== undefined) process.exit(exitCode ?? EXIT.ok);
      // A server ends in order what it has started. Until then all that it writes fails, too.
      readerGone.abort();
      return;
    }
    const failure = fileError("write to", "the standard output", error);
    const report = reportError(failure, errorStyle(args, { stderr, environment }));
    if (!isToldOfOutput) stderr.write(`${report.text}\n`);
    isToldOfOutput = true;
    // What observes a server does not stop it: a terminal that has closed, or a full disk under its log.
    if (!isServer) process.exit(report.exitCode);
  });
  // Messages that nobody can read change nothing: a server serves on, and a command ends with its code.
  stderr.on("error", () => {});

  closeLostTerminals();
  const signal = watchInterrupts(process, readerGone.signal, ignored);
  const onServer = (): void => {
    isServer = true;
  };
  const own = { stdin, stdout, stderr, environment, signal, onServer };
  exitCode = await run(args, process.connected ? { ...own, tellStarter } : own);

  // Leftovers of an interrupted command, such as an unfinished connection, must not keep the process
  // alive; its output must be written first, except for data of an interrupted one, which nobody may read.
  const isCut = signal.aborted && exitCode === EXIT.interrupted;
  const flushed = isCut ? [stderr] : [stdout, stderr];
  await Promise.all(flushed.map((stream) => new Promise((resolve) => stream.write("", resolve))));
  process.exit(exitCode);
}

/** Sends a message to the process that has started this one; settles when it is sent, or when that process is gone. */
function tellStarter(message: StarterMessage): Promise<void> {
  return new Promise((resolve) => {
    // The end of that process is noticed elsewhere, and ends this one.
    process.send?.(message, undefined, undefined, () => resolve());
  });
}

/**
 * Closes, when the process exits, each standard stream whose terminal has gone. Else Node.js would abort while it
 * puts the terminal's mode back.
 */
function closeLostTerminals(): void {
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
  process.once("exit", () => {
    for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
  });
}
