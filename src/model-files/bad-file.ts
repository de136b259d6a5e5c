import { PserverError } from "../protocol/errors.ts";

/** The BAD_FILE for `what` in a file that is not as expected. */
export function badFile(
  path: string,
  what: string,
  expected: string | number,
  received: string | number,
  cause?: unknown,
): PserverError {
  return new PserverError(
    "BAD_FILE",
    `${path}: ${what}: expected ${expected}; received ${received}`,
    { path, what, expected, received },
    cause === undefined ? undefined : { cause },
  );
}

/** A BAD_DTYPE for an element type of a file that no parameter has. */
export function badFileDtype(
  path: string,
  what: string,
  expected: string,
  received: string,
): PserverError {
  return new PserverError(
    "BAD_DTYPE",
    `${path}: dtype of ${what}: expected ${expected}; received ${received}`,
    { path, what, expected, received },
  );
}
