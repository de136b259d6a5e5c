import {
  ERROR_CODES,
  type ErrorCode,
  isErrorCode,
  type Reaction,
  reactionTo,
  reactionToRejection,
} from "../../src/protocol/errors.ts";

/** What an answer is to: a request, a question for outcomes, or a record, whose outcome it is. */
export type AskedKind = "lifecycle" | "pull" | "step" | "outcome" | "record";

/**
 * What a client is seen to do about the error in an answer: `again`, it asks again after a pause; `later`, as
 * if no answer had come; `look-up`, it looks the parameter up first; `replaced`, it asks again, from the
 * beginning of the journal that the error names; `rejoin`, it begins a new session; `end`, it can do
 * nothing more; `enter`, it enters the steps anew and goes on; `fail`, the call fails with the code.
 */
type Observed = "again" | "later" | "look-up" | "replaced" | "rejoin" | "end" | "enter" | "fail";

/** The reactions that an answer of a kind can bring about; all others are `fail`. */
const REACTIONS_OF: Readonly<Record<AskedKind, Readonly<Partial<Record<Reaction, Observed>>>>> = {
  lifecycle: { retry: "again", rejoin: "rejoin", end: "end" },
  pull: { retry: "again", "look-up": "look-up", replaced: "replaced", "enter-anew": "look-up" },
  step: { retry: "again", replaced: "replaced", "enter-anew": "enter" },
  outcome: { retry: "again", rejoin: "rejoin", end: "end", lost: "fail", replaced: "fail" },
  // An outcome is for ever.
  record: { rejoin: "rejoin", end: "end" },
};

/** What a client is to do about an error in the answer to a question. */
function observedAt(kind: AskedKind, code: ErrorCode): Observed {
  // Nobody knows yet what became of the records: only their deadline ends the waiting.
  return REACTIONS_OF[kind][reactionTo(code)] ?? (kind === "outcome" ? "later" : "fail");
}

/** Every code in the answer to every kind of question, and what a client does about it. */
export function reactionCases(): Readonly<Record<string, readonly object[]>> {
  const codes = Object.keys(ERROR_CODES).filter(isErrorCode);
  const kinds = Object.keys(REACTIONS_OF) as AskedKind[];
  return {
    codes: codes.map((code) => ({
      code,
      reaction: reactionTo(code),
      rejection: reactionToRejection(code),
    })),
    reactions: kinds.flatMap((kind) =>
      codes.map((code) => ({ kind, code, reaction: observedAt(kind, code) })),
    ),
  };
}
