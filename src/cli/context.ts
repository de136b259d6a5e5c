import type { Readable } from "node:stream";
import { Output, type OutputFlags, type OutputStream } from "./output/output.ts";

/** Where answers to questions come from; questions are asked only if it is a terminal. */
export type InputStream = Readable & { readonly isTTY?: boolean };

/** The process that a command runs in. */
export interface CliProcess {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
  /** Told by a command that serves: it stops in order when its output has no reader any more. */
  readonly onServer?: () => void;
}

/** Dependencies of a command. */
export interface CliContext extends CliProcess {
  /** Sets the exit code of a command that does not throw: one of `EXIT`, or a trainer's. */
  setExitCode(code: number): void;
}

/** The printer of a command that ends by itself. */
export function openOutput(context: CliContext, flags: OutputFlags): Output {
  return Output.open(context, context.environment, flags);
}

/**
 * The printer of a command that serves: each message begins with the time, as in a log. Tells the process that it
 * is a server.
 */
export function openLog(context: CliContext, flags: OutputFlags): Output {
  context.onServer?.();
  return Output.open(context, context.environment, flags, () => new Date());
}
