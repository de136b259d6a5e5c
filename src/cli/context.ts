import type { Readable } from "node:stream";
import { Output, type OutputFlags, type OutputStream } from "./output/output.ts";

/** Where answers to questions come from; a terminal, or nobody who could be asked. */
export type InputStream = Readable & { readonly isTTY?: boolean };

/** The process that a command runs in. */
export interface CliProcess {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}

/** What a command gets to work with. */
export interface CliContext extends CliProcess {
  /** Ends the command with a code other than 0 although it has run to its end: one of `EXIT`, or a trainer's. */
  setExitCode(code: number): void;
}

/** The printer of one command. */
export function openOutput(context: CliContext, flags: OutputFlags): Output {
  return new Output(context, context.environment, flags);
}

/** The printer of a command that serves: its messages are a log, so each begins with the time. */
export function openLog(context: CliContext, flags: OutputFlags): Output {
  return new Output(context, context.environment, flags, () => new Date());
}
