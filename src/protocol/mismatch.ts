import { type ErrorCode, type ErrorDetails, PserverError } from "../protocol/errors.ts";

/** The error for a thing that is not as expected: `what: expected …; received …`, with these details. */
export function mismatch(
  code: ErrorCode,
  what: string,
  expected: string,
  received: string | number,
  details: ErrorDetails = {},
): PserverError {
  const message = `${what}: expected ${expected}; received ${received}`;
  return new PserverError(code, message, { ...details, expected, received });
}
