import { type ErrorDetails, PserverError } from "./errors.ts";

/** How long to wait before asking again, where BUSY does not say otherwise. */
export const RETRY_AFTER_MS = 250;

/** The longest that an asker waits because BUSY says so. */
export const RETRY_AFTER_MS_MAX = 5_000;

/** A BUSY that names in its details which bound was reached and how long to wait: `retryAfterMs`. */
export function busy(
  message: string,
  bound: ErrorDetails & { readonly expected: number },
  waitMs: number = RETRY_AFTER_MS,
): PserverError {
  const text = `${message}; ask again after ${waitMs} ms`;
  return new PserverError("BUSY", text, { ...bound, retryAfterMs: waitMs });
}

/** How long an error says to wait before asking again, at most 5 s; 0 if it says nothing. */
export function retryAfterMs({ details }: PserverError): number {
  const hint = details["retryAfterMs"];
  if (typeof hint !== "number" || !(hint > 0)) return 0;
  return Math.min(hint, RETRY_AFTER_MS_MAX);
}
