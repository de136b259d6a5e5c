import { type ErrorDetails, PserverError } from "./errors.ts";

/** Pause before asking again if BUSY names none. */
export const RETRY_AFTER_MS = 250;

/** Longest pause that an asker takes from BUSY. */
export const RETRY_AFTER_MS_MAX = 5_000;

/** The error BUSY; its details name the limit that was reached and how long to wait, `retryAfterMs`. */
export function busy(
  message: string,
  bound: ErrorDetails & { readonly expected: number },
  waitMs: number = RETRY_AFTER_MS,
): PserverError {
  const text = `${message}; ask again after ${waitMs} ms`;
  return new PserverError("BUSY", text, { ...bound, retryAfterMs: waitMs });
}

/** The pause before asking again that an error names, at most 5 s; 0 if it names none. */
export function retryAfterMs({ details }: PserverError): number {
  const hint = details["retryAfterMs"];
  if (typeof hint !== "number" || !(hint > 0)) return 0;
  return Math.min(hint, RETRY_AFTER_MS_MAX);
}
