import type { ErrorCode, PserverError } from "../../protocol/index.ts";

/** Errors about a journal or its ownership that no second attempt can change. */
const FINAL: readonly ErrorCode[] = [
  "JOURNAL_LOST",
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
  "NOT_OWNER",
  "UNKNOWN_RULES",
  "TOO_LARGE",
  "CLOSED",
  "DENIED",
];

/** Errors without a cause outside: defects of this program, or malformed answers of the broker. */
const UNEXPLAINED: readonly ErrorCode[] = ["INTERNAL", "BAD_MESSAGE"];

/** Consecutive attempts that may end in such an error: one or two may be chance. */
const UNEXPLAINED_MAX = 10;

/** Whether an error of taking over or reading a journal stays however often one retries. */
export function isFinal(error: PserverError): boolean {
  return FINAL.includes(error.code);
}

/**
 * Decides whether an operation on a journal is retried: without limit after a transient error, not at
 * all after a final one, and at most ten times in a row after an unexplained one.
 */
export class RetryLimit {
  #unexplained = 0;

  /** Counts a failed attempt; whether it was the last one. */
  isReachedBy(error: PserverError): boolean {
    this.#unexplained = UNEXPLAINED.includes(error.code) ? this.#unexplained + 1 : 0;
    return isFinal(error) || this.#unexplained >= UNEXPLAINED_MAX;
  }

  /** Notes that an attempt has succeeded. */
  clear(): void {
    this.#unexplained = 0;
  }
}
