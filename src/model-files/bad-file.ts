import type { PserverError } from "../protocol/errors.ts";
import { mismatch } from "../protocol/mismatch.ts";

/** The BAD_FILE for `what` in a file that is not as expected. */
export function badFile(
  path: string,
  what: string,
  expected: string | number,
  received: string | number,
  cause?: unknown,
): PserverError {
  const options = cause === undefined ? undefined : { cause };
  return mismatch("BAD_FILE", `${path}: ${what}`, expected, received, { path, what }, options);
}

/** A BAD_DTYPE for an element type of a file that no parameter has. */
export function badFileDtype(
  path: string,
  what: string,
  expected: string,
  received: string,
): PserverError {
  return mismatch("BAD_DTYPE", `${path}: dtype of ${what}`, expected, received, { path, what });
}
