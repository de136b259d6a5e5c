#ifndef WIRE_REQUESTS_H
#define WIRE_REQUESTS_H

#include "calls/call.h"
#include "calls/client.h"
#include "wire/envelope.h"

/**
 * A question to hosts. It is repeated after 1 s, 2 s and then every 4 s, and asked again after answers
 * that are worth retrying; the first answer counts.
 */
struct ask {
  char subject[SUBJECT_SIZE];
  /** Writes the entries of the message, anew for each sending; and the bytes after them, if any. */
  pserver_status (*write)(struct call *call, struct ask *ask, struct draft *draft);
  /** Reads the answer, once. */
  pserver_status (*read)(struct call *call, struct ask *ask, const struct message *message);
  /** Makes the last error when no host listens. */
  pserver_status (*nobody)(struct call *call, struct ask *ask);
  /** Reacts to an error in an answer: returns OK to ask again at once, else the status to fail with. NULL
   * fails with the error. `message` is NULL if no host answered. */
  pserver_status (*refused)(struct call *call, struct ask *ask, pserver_status status,
                            const struct message *message);
  void *context;
  /** How long errors that are worth retrying are retried; 0 for as long as the call lasts. */
  int64_t retry_ms;
  /** Whether it is never repeated: doing it twice would be wrong. */
  bool is_sent_once;
  /** Set by `read`: the message is not the answer yet; more follow. */
  bool goes_on;
  /** Where its answers come to; valid in `write`. */
  const char *reply;
  /** What it counts in the window of replies; 0 for nothing. */
  size_t window_bytes;

  /** State of ps_run_requests(). */
  enum { ASK_WAITING, ASK_OPEN, ASK_DONE } state;
  int64_t started_ms;
  int64_t due_ms;
  int64_t repeat_ms;
  int64_t pause_ms;
};

/**
 * Asks questions, as many at once as the window of replies admits; OK once each has its answer, else
 * the first error, or what has ended the call. Lock not held.
 */
pserver_status ps_run_requests(struct call *call, struct ask *asks, size_t count);

/** Whether the same request can succeed after a pause. */
bool ps_is_worth_retrying(pserver_status status);

#endif
