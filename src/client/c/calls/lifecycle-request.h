#ifndef CALLS_LIFECYCLE_REQUEST_H
#define CALLS_LIFECYCLE_REQUEST_H

#include "calls/call.h"
#include "core/session-core.h"
#include "wire/identity.h"
#include "wire/requests.h"

/** Dependencies of lifecycle requests. */
struct ps_lifecycle {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_session_core *core;
};

/** Writes the entries of a request after `session`. */
typedef void (*ps_write_entries)(void *context, struct ps_draft *draft);
/** Reads the reply. */
typedef pserver_status (*ps_read_reply)(void *context, const struct ps_message *message);

/** A request to the hosts of the job, on the I/O thread. */
struct ps_lifecycle_request {
  const char *verb;
  /** `write` and `read` may be NULL. */
  ps_write_entries write;
  ps_read_reply read;
  void *context;
  /** Whether it carries the session. */
  bool has_session;
  /** Whether it is repeated in the next session if its session has ended, as the session core decides. */
  bool is_asked_again;
  /** When the owner ends it by ps_lifecycle_end(). */
  int64_t ends_at_ms;
  /** Called once: with OK or the last error, NO_HOST if nobody answered in time. May free the request. */
  void (*over)(struct ps_lifecycle_request *request, pserver_status status);
  void *owner;

  /** Set by the functions below. */
  const struct ps_lifecycle *lifecycle;
  struct ps_session_request core;
  struct ps_ask ask;
  struct ps_ask_group group;
  /** The session that its answer says is over; 0 if it says none. */
  uint64_t received;
  /** Whether it is over; used for requests of calls. */
  bool is_over;
};

/** Sends a request under the current session. */
void ps_lifecycle_begin(const struct ps_lifecycle *lifecycle, struct ps_lifecycle_request *request);

/** Ends a request that is under way with the last error. */
void ps_lifecycle_end(struct ps_lifecycle_request *request, pserver_status status);

/** Returns the last error as the failure of a request, with one reference; never NULL. */
struct ps_failure *ps_lifecycle_failure(const struct ps_lifecycle_request *request);

/**
 * Sends the requests of a call, all at once, and waits for all answers. Returns the first error. Sets the
 * requests' `over`, `owner` and `ends_at_ms`.
 */
pserver_status ps_run_lifecycles(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                 struct ps_lifecycle_request *requests, size_t count);

/** The same for one request. */
pserver_status ps_run_lifecycle(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                struct ps_lifecycle_request *request);

/**
 * Sends a request, again in the next session if its session ends, and waits. Returns the error in the reply;
 * NO_HOST if nobody answers in time. `write` and `read` may be NULL.
 */
pserver_status ps_request_lifecycle(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                    const char *verb, ps_write_entries write, ps_read_reply read,
                                    void *context);

/** Commands of the session core. */
void ps_repeat_request(void *shell, struct ps_session_request *request);
void ps_fail_request(void *shell, struct ps_session_request *request, struct ps_failure *failure);

#endif
