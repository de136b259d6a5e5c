import { ensureError, type PserverError } from "../../protocol/errors.ts";
import { EXIT_CODES, type ExitCode } from "../exit-codes.ts";
import { hintFor } from "../hints.ts";
import type { Paint } from "./colors.ts";
import { visibleJson, visibleLines } from "./visible.ts";
import { wrapMessage } from "./wrap.ts";

/** An error report: `pserver: CODE: message` and a hint, or one line of JSON. */
export interface ReportedError {
  readonly text: string;
  readonly exitCode: ExitCode;
}

/** How an error is reported. */
export interface ReportStyle {
  readonly json: boolean;
  readonly paint: Paint;
  /** The command that ended with it; "" if it was not known yet. */
  readonly command: string;
  /** Columns of the terminal, if the error is printed on one. */
  readonly width?: number;
  /** Time of the error in ISO form, for a log. */
  readonly time?: string;
}

/** The report of an error that a command ended with, and the exit code that goes with it. */
export function reportError(thrown: unknown, style: ReportStyle): ReportedError {
  const { json, paint, command, time, width = Number.POSITIVE_INFINITY } = style;
  const error = ensureError(thrown);
  const exitCode = EXIT_CODES[error.code];
  if (json) return { text: jsonError(error, time), exitCode };
  const head = paint("fail", `pserver: ${error.code}:`);
  const first = time === undefined ? head : `${time} ${head}`;
  const lines = [wrapMessage(`${first} ${visibleLines(error.message)}`, width)];
  const hint = hintFor(error, command);
  if (hint !== undefined) lines.push(wrapMessage(`${paint("faint", "hint:")} ${hint}`, width));
  return { text: lines.join("\n"), exitCode };
}

/** `{"error":{code,message,details}}`, on one line; after the `time`, if one is given. */
export function jsonError(error: PserverError, time?: string): string {
  return visibleJson({ time, error: error.toWire() });
}
