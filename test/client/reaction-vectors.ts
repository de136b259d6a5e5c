import {
  ERROR_CODES,
  type ErrorCode,
  healsWithTime,
  isErrorCode,
} from "../../src/protocol/errors.ts";

/** What an answer is to: a request, a question for outcomes, or a record, whose outcome it is. */
export type AskedKind = "lifecycle" | "pull" | "step" | "outcome" | "record";

/**
 * What a client does about the error in an answer: `again`, it asks again after a pause; `later`, as if no
 * answer had come; `look-up`, it looks the parameter up first; `replaced`, it asks again, from the
 * beginning of the journal that the error names; `rejoin`, it begins a new session; `end`, it can do
 * nothing more; `fail`, the call fails with the code.
 */
export type Reaction = "again" | "later" | "look-up" | "replaced" | "rejoin" | "end" | "fail";

/** The shard will not fold what it was sent until somebody mends it. */
const STOPPED: readonly ErrorCode[] = [
  "JOURNAL_DAMAGED",
  "JOURNAL_LOST",
  "JOURNAL_REPLACED",
  "SNAPSHOT_DAMAGED",
  "UNKNOWN_RULES",
];

const SPECIAL: Readonly<Record<AskedKind, Readonly<Partial<Record<ErrorCode, Reaction>>>>> = {
  lifecycle: { REJOIN: "rejoin", SUPERSEDED: "end" },
  pull: { STALE_EPOCH: "look-up", JOURNAL_REPLACED: "replaced" },
  step: { JOURNAL_REPLACED: "replaced" },
  outcome: { REJOIN: "rejoin", SUPERSEDED: "end" },
  record: { REJOIN: "rejoin", SUPERSEDED: "end" },
};

/** What a client is to do about an error in the answer to a question. */
export function reactionTo(kind: AskedKind, code: ErrorCode): Reaction {
  const special = SPECIAL[kind][code];
  if (special !== undefined) return special;
  // An outcome is for ever.
  if (kind === "record") return "fail";
  if (healsWithTime(code)) return "again";
  // Nobody knows yet what became of the records: only their deadline ends the waiting.
  if (kind === "outcome" && !STOPPED.includes(code)) return "later";
  return "fail";
}

/** Every code in the answer to every kind of question, and what a client does about it. */
export function reactionCases(): Readonly<Record<string, readonly object[]>> {
  const codes = Object.keys(ERROR_CODES).filter(isErrorCode);
  const kinds = Object.keys(SPECIAL) as AskedKind[];
  return {
    reactions: kinds.flatMap((kind) =>
      codes.map((code) => ({ kind, code, reaction: reactionTo(kind, code) })),
    ),
  };
}
