/* Written by scripts/write-c-errors.mjs from src/protocol: edit that. */
#ifndef ERRORS_PROTOCOL_H
#define ERRORS_PROTOCOL_H

/* Limits, whose meanings and reasons are in src/protocol. */
#define PS_PROTOCOL_VERSION 1
#define PS_NAME_BYTES_MAX 200
#define PS_ID_BYTES_MAX 64
#define PS_HEADER_BYTES_MAX 65536
#define PS_SHARDS_MAX 256
#define PS_WINDOW_RECORDS 1024
#define PS_PARAMETERS_PER_REQUEST_MAX 256
#define PS_BATCH_ENTRIES_MAX 4096
#define PS_BATCH_RUNS_MAX 64
#define PS_BATCH_HEAD_BYTES_MAX 16384
#define PS_BATCH_BYTES 1048576
#define PS_BATCH_ENTRY_BYTES_MAX 262144
#define PS_NOTE_BYTES_MAX 4096
#define PS_NOTE_ENTRIES_MAX 64
#define PS_NOTE_NAME_BYTES_MAX 128
#define PS_NOTE_SHARD 0
#define PS_RETRY_AFTER_MS_MAX 5000
#define PS_CONTRIBUTION_COUNT_MAX 1099511627776
#define PS_UNSETTLED_BYTES_MAX 8388608
#define PS_UNSETTLED_BLOCK_BYTES 1024

/** What a client does about an error in the answer to a request or a question. */
enum ps_reaction {
  /** the call fails with the code */
  PS_REACTION_FAIL,
  /** the same request is sent again after a pause */
  PS_REACTION_RETRY,
  /** a call that waits for initialization asks again; any other fails */
  PS_REACTION_AWAIT_INIT,
  /** another trainer initializes instead: a call that waits for it goes on, others fail */
  PS_REACTION_YIELD_INIT,
  /** the parameter has a newer epoch and is looked up again; who initialized it yields */
  PS_REACTION_LOOK_UP,
  /** the request goes on in the journal that the error names; older records are lost */
  PS_REACTION_REPLACED,
  /** records behind the end of the shard's journal are lost; the call fails */
  PS_REACTION_LOST,
  /** the trainer enters the steps anew: a gradient, or the end of a step, once in its call; a read goes on without waiting for a step */
  PS_REACTION_ENTER_ANEW,
  /** the session is over: the client joins again */
  PS_REACTION_REJOIN,
  /** the id belongs to a newer session: the client can do nothing more */
  PS_REACTION_END,
};

/** The codes that PS_REACTION_FAIL is not for. */
#define PS_REACTION_TABLE(X) \
  X(PSERVER_ERR_NOT_INITIALIZED, PS_REACTION_AWAIT_INIT) \
  X(PSERVER_ERR_NOT_SELECTED, PS_REACTION_YIELD_INIT) \
  X(PSERVER_ERR_STALE_EPOCH, PS_REACTION_LOOK_UP) \
  X(PSERVER_ERR_JOB_REPLACED, PS_REACTION_END) \
  X(PSERVER_ERR_SUPERSEDED, PS_REACTION_END) \
  X(PSERVER_ERR_REJOIN, PS_REACTION_REJOIN) \
  X(PSERVER_ERR_WINDOW, PS_REACTION_RETRY) \
  X(PSERVER_ERR_EARLY, PS_REACTION_RETRY) \
  X(PSERVER_ERR_NOT_MEMBER, PS_REACTION_ENTER_ANEW) \
  X(PSERVER_ERR_JOURNAL_FULL, PS_REACTION_RETRY) \
  X(PSERVER_ERR_JOURNAL_DAMAGED, PS_REACTION_LOST) \
  X(PSERVER_ERR_JOURNAL_LOST, PS_REACTION_LOST) \
  X(PSERVER_ERR_JOURNAL_REPLACED, PS_REACTION_REPLACED) \
  X(PSERVER_ERR_SNAPSHOT_DAMAGED, PS_REACTION_LOST) \
  X(PSERVER_ERR_UNKNOWN_RULES, PS_REACTION_LOST) \
  X(PSERVER_ERR_JOURNAL_FAULT, PS_REACTION_RETRY) \
  X(PSERVER_ERR_FOLD_FAILED, PS_REACTION_LOST) \
  X(PSERVER_ERR_NO_OWNER, PS_REACTION_RETRY) \
  X(PSERVER_ERR_NOT_OWNER, PS_REACTION_RETRY) \
  X(PSERVER_ERR_BUSY, PS_REACTION_RETRY) \
  X(PSERVER_ERR_NO_HOST, PS_REACTION_RETRY) \
  X(PSERVER_ERR_NO_MEMORY, PS_REACTION_RETRY) \
  X(PSERVER_ERR_TIMEOUT, PS_REACTION_RETRY) \
  X(PSERVER_ERR_NO_BROKER, PS_REACTION_RETRY) \
  X(PSERVER_ERR_NO_ETCD, PS_REACTION_RETRY) \
  X(PSERVER_ERR_JETSTREAM_UNAVAILABLE, PS_REACTION_RETRY)

/** What a client does about an error that is the outcome of a record. */
enum ps_rejection {
  /** the call fails with the code */
  PS_REJECTION_FAIL,
  /** a gradient that names the version it was made from is sent again without it */
  PS_REJECTION_RESEND_UNSEEN,
  /** the trainer enters the steps anew and sends the gradient once more */
  PS_REJECTION_RESEND_IN_STEP,
  /** a call that allows for late gradients counts it; any other fails */
  PS_REJECTION_COUNT_LATE,
  /** a repeated initialization counts it as applied; any other fails */
  PS_REJECTION_COUNT_PRESENT,
  /** the outcome stays unknown */
  PS_REJECTION_FORGOTTEN,
};

/** The codes that PS_REJECTION_FAIL is not for. */
#define PS_REJECTION_TABLE(X) \
  X(PSERVER_ERR_BAD_VALUE, PS_REJECTION_RESEND_UNSEEN) \
  X(PSERVER_ERR_ALREADY_INITIALIZED, PS_REJECTION_COUNT_PRESENT) \
  X(PSERVER_ERR_SETTLED, PS_REJECTION_FORGOTTEN) \
  X(PSERVER_ERR_LATE, PS_REJECTION_COUNT_LATE) \
  X(PSERVER_ERR_EARLY, PS_REJECTION_RESEND_IN_STEP)

/** What JetStream's error numbers mean for a record that it did not store. */
#define PS_REFUSAL_TABLE(X) \
  X(10002, PSERVER_ERR_JOURNAL_FULL) \
  X(10005, PSERVER_ERR_JETSTREAM_UNAVAILABLE) \
  X(10014, PSERVER_ERR_JETSTREAM_UNAVAILABLE) \
  X(10023, PSERVER_ERR_JOURNAL_FULL) \
  X(10026, PSERVER_ERR_JOURNAL_FULL) \
  X(10027, PSERVER_ERR_JOURNAL_FULL) \
  X(10028, PSERVER_ERR_JOURNAL_FULL) \
  X(10036, PSERVER_ERR_INTERNAL) \
  X(10039, PSERVER_ERR_NO_JETSTREAM) \
  X(10047, PSERVER_ERR_JOURNAL_FULL) \
  X(10052, PSERVER_ERR_INTERNAL) \
  X(10053, PSERVER_ERR_INTERNAL) \
  X(10054, PSERVER_ERR_TOO_LARGE) \
  X(10059, PSERVER_ERR_JETSTREAM_UNAVAILABLE) \
  X(10074, PSERVER_ERR_BAD_VALUE) \
  X(10076, PSERVER_ERR_NO_JETSTREAM) \
  X(10097, PSERVER_ERR_TOO_LARGE) \
  X(10120, PSERVER_ERR_JOURNAL_FULL) \
  X(10122, PSERVER_ERR_JOURNAL_FULL) \
  X(10164, PSERVER_ERR_JETSTREAM_UNAVAILABLE)

#endif
