import { ensureError, type PserverError } from "../../protocol/errors.ts";
import { EXIT_CODES, type ExitCode } from "../exit-codes.ts";
import { hintFor } from "../hints.ts";
import type { Paint } from "./colors.ts";
import { visibleJson, visibleLines } from "./visible.ts";

/** How an error is told: as `pserver: CODE: message` and a hint, or as one line of JSON. */
export interface ReportedError {
  readonly text: string;
  readonly exitCode: ExitCode;
}

/** The report of an error that a command ended with, and the exit code that goes with it. */
export function reportError(
  thrown: unknown,
  json: boolean,
  paint: Paint,
  command: string,
): ReportedError {
  const error = ensureError(thrown);
  const exitCode = EXIT_CODES[error.code];
  if (json) return { text: jsonError(error), exitCode };
  const head = paint("fail", `pserver: ${error.code}:`);
  const lines = [`${head} ${visibleLines(error.message)}`];
  const hint = hintFor(error, command);
  if (hint !== undefined) lines.push(`${paint("faint", "hint:")} ${hint}`);
  return { text: lines.join("\n"), exitCode };
}

/** `{"error":{code,message,details}}`, on one line. */
export function jsonError(error: PserverError): string {
  return visibleJson({ error: error.toWire() });
}
