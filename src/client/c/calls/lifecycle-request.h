#ifndef CALLS_LIFECYCLE_REQUEST_H
#define CALLS_LIFECYCLE_REQUEST_H

#include <pserver.h>

#include "core/session-core.h"
#include "wire/envelope.h"

struct call;

/** Writes the entries of a request, after `session`. */
typedef void (*write_entries)(void *context, struct draft *draft);
/** Reads the reply. */
typedef pserver_status (*read_reply)(struct call *call, void *context, const struct message *message);

/** A question to the hosts of the job. */
struct lifecycle_request {
  const char *verb;
  /** May be NULL, as `read` may. */
  write_entries write;
  read_reply read;
  void *context;
  /** Whether it names the session. */
  bool has_session;
  /** The session that its answer says is over; 0 if it says none. */
  uint64_t received;
};

/** Asks it once, under the current session. The error in the reply; NO_HOST if nobody answers in time. */
pserver_status ps_ask_lifecycle(struct call *call, struct lifecycle_request *request);

/** The last error, of a request that was asked, with one reference; never NULL. */
struct ps_failure *ps_lifecycle_failure(const struct lifecycle_request *request);

/**
 * A lifecycle request that is asked again in the next session if this one has ended, as the session core
 * decides. The error in the reply; NO_HOST if nobody answers in time. `write` and `read` may be NULL.
 */
pserver_status ps_request_lifecycle(struct call *call, const char *verb, write_entries write,
                                    read_reply read, void *context);

/** Commands of the session core. Lock held. */
void ps_repeat_request(void *shell, struct ps_session_request *request);
void ps_fail_request(void *shell, struct ps_session_request *request, struct ps_failure *failure);

#endif
