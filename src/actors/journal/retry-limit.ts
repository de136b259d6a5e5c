import type { ErrorCode, PserverError } from "../../protocol/index.ts";

/** Findings about the journal or its ownership that no second attempt can change. */
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

/** What no state of broker, disk or hosts explains: a defect of ours, or a broker that answers with noise. */
const UNEXPLAINED: readonly ErrorCode[] = ["INTERNAL", "BAD_MESSAGE"];

/** Attempts in a row that may end in what nothing explains: chance may end one or two so, not all. */
const UNEXPLAINED_MAX = 10;

/** Whether an error of taking over or reading a journal stays, however often it is tried again. */
export function isFinal(error: PserverError): boolean {
  return FINAL.includes(error.code);
}

/**
 * Decides whether something about a journal is tried again. What can pass is tried without an end, and
 * what cannot not at all; an error that nothing explains ends it when ten attempts in a row have.
 */
export class RetryLimit {
  #unexplained = 0;

  /** Whether an attempt that ended in this error was the last one. */
  isReachedBy(error: PserverError): boolean {
    this.#unexplained = UNEXPLAINED.includes(error.code) ? this.#unexplained + 1 : 0;
    return isFinal(error) || this.#unexplained >= UNEXPLAINED_MAX;
  }

  /** An attempt has succeeded. */
  clear(): void {
    this.#unexplained = 0;
  }
}
