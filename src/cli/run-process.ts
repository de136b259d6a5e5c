import type { CliProcess } from "./context.ts";
import { watchInterrupts } from "./interrupts.ts";

/** Runs a command line as the work of this process, and ends the process with its exit code. */
export async function runProcess(
  run: (args: readonly string[], cliProcess: CliProcess) => Promise<number>,
): Promise<never> {
  // A reader such as `head` may close the pipe early, which is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });

  const exitCode = await run(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    environment: process.env,
    signal: watchInterrupts(process),
  });

  // Leftovers of an interrupted command, such as an unfinished connection, must not keep the process
  // alive; its output must be written first.
  await Promise.all(
    [process.stdout, process.stderr].map(
      (stream) => new Promise((resolve) => stream.write("", resolve)),
    ),
  );
  process.exit(exitCode);
}
