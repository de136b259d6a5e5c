import { PserverError } from "../../src/protocol/errors.ts";

/** The error that `run` is refused with; throws if it is not refused, or by another kind of error. */
export function refusalOf(run: () => unknown): PserverError {
  let given: unknown;
  try {
    given = run();
  } catch (error) {
    if (error instanceof PserverError) return error;
    throw error;
  }
  throw new Error(`expected a refusal; received ${String(given)}`);
}

/** The code that `run` is refused with, "" if it is not refused. */
export function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof PserverError) return error.code;
    throw error;
  }
  return "";
}
