import type { ErrorCode } from "../../protocol/errors.ts";
import type { Outcome } from "../../protocol/outcomes.ts";

/** Limit of a text: a shard remembers thousands of outcomes. */
const MESSAGE_LENGTH_MAX = 400;

/**
 * The outcome of a rejected record. The text is made well-formed, so that a snapshot restores the
 * same characters.
 */
export function rejection(n: number, seq: number, code: ErrorCode, message: string): Outcome {
  const text = message.slice(0, MESSAGE_LENGTH_MAX).toWellFormed();
  return { n, seq, version: 0, code, message: text };
}

/** The outcome of a record before the first `rules`. */
export function noRules(n: number, seq: number): Outcome {
  return rejection(n, seq, "UNKNOWN_RULES", "the journal has no rules yet: no host has begun it");
}
