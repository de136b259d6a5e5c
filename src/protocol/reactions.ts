/**
 * What a client does about an error in the answer to a request or a question: the words of the column
 * `reaction` in the table of error codes, and what each means.
 */
export const REACTIONS = {
  fail: "the call fails with the code",
  retry: "the same request is sent again after a pause",
  "await-init": "a call that waits for initialization asks again; any other fails",
  "yield-init":
    "another trainer initializes instead: a call that waits for it goes on, others fail",
  "look-up": "the parameter has a newer epoch and is looked up again; who initialized it yields",
  replaced: "the request goes on in the journal that the error names; older records are lost",
  lost: "records behind the end of the shard's journal are lost; the call fails",
  "enter-anew":
    "the call fails, but a read goes on without waiting for a step; the next gradient enters the steps anew",
  rejoin: "the session is over: the client joins again",
  end: "the id belongs to a newer session: the client can do nothing more",
} as const;

/** See {@link REACTIONS}. */
export type Reaction = keyof typeof REACTIONS;

/**
 * What a client does about a code that is the outcome of a record, where that differs from the
 * reaction to the code in an answer: the words of the column `rejection` in the table of error codes.
 */
export const REJECTION_REACTIONS = {
  fail: "the call fails with the code",
  "resend-unseen": "a gradient that names the version it was made from is sent again without it",
  "resend-in-step": "the trainer enters the steps anew and sends the gradient once more",
  "count-late": "a call that allows for late gradients counts it; any other fails",
  "count-present": "a repeated initialization counts it as applied; any other fails",
  forgotten: "the outcome stays unknown",
} as const;

/** See {@link REJECTION_REACTIONS}. */
export type RejectionReaction = keyof typeof REJECTION_REACTIONS;
