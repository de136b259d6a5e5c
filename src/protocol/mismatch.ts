import { type ErrorCode, type ErrorDetails, PserverError } from "./errors.ts";

/** The error for a thing that is not as expected: `what: expected …; received …`, with these details. */
export function mismatch(
  code: ErrorCode,
  what: string,
  expected: string | number,
  received: string | number,
  details: ErrorDetails = {},
  options?: ErrorOptions,
): PserverError {
  const message = `${what}: expected ${expected}; received ${received}`;
  return new PserverError(code, message, { ...details, expected, received }, options);
}
