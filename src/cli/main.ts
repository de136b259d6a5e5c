#!/usr/bin/env node
/** The program `pserver`: one command line, run in this process. */
import { watchInterrupts } from "./interrupts.ts";
import { runCli } from "./run-cli.ts";

// A reader such as `head` may go before all is written: that is no failure of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

const exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  signal: watchInterrupts(process),
});

// What an interrupted command has left behind, such as a half-made connection, must not keep the
// process alive; what it has printed must get out.
await Promise.all(
  [process.stdout, process.stderr].map(
    (stream) => new Promise((resolve) => stream.write("", resolve)),
  ),
);
process.exit(exitCode);
