#ifndef CORE_SESSION_CORE_H
#define CORE_SESSION_CORE_H

#include "core/commands.h"
#include "core/failure.h"
#include "core/session-request.h"

/**
 * The sessions of a client: joins, renews the lease every third of its duration, rejoins when a host
 * answers REJOIN, and stops when a newer session of the same trainer has joined.
 *
 * At most one attempt to rejoin is under way. Meanwhile requests that found their session ended wait for
 * its result. A SUPERSEDED is kept until the new session is known, because it counts only if it is about
 * that one.
 *
 * Initialize it with zeros except `commands` and `listener`. It allocates no memory.
 */
struct ps_session_core {
  const struct ps_session_commands *commands;
  const struct ps_session_listener *listener;
  /** Requests that wait for a new session, in order. */
  struct ps_queue waiting;
  /** Number of the current session; 0 before the first. */
  uint64_t session;
  int64_t lease_ms;
  bool is_rejoining;
  /** Whether the client is lost unless the attempt to rejoin succeeds. */
  bool is_rejoin_needed;
  /** A SUPERSEDED received during the attempt to rejoin; NULL if none. */
  struct ps_failure *superseded;
  /** Whether it no longer renews or joins. */
  bool is_stopped;
};

/** A session has begun, the first or a later one. */
void ps_session_core_joined(struct ps_session_core *core, uint64_t session, int64_t lease_ms,
                            int64_t now_ms);

/** An attempt to rejoin has failed. It is repeated if the error is retryable. */
void ps_session_core_rejoin_failed(struct ps_session_core *core, struct ps_failure *failure);

/** The time of `set_renewal` has come. */
void ps_session_core_renewal_due(struct ps_session_core *core);

/** The lease has been renewed. */
void ps_session_core_renewed(struct ps_session_core *core, int64_t now_ms);

/** The lease could not be renewed. */
void ps_session_core_renew_failed(struct ps_session_core *core, struct ps_failure *failure,
                                  int64_t now_ms);

/** A host says that a session is over: after REJOIN the client rejoins, SUPERSEDED is final. */
void ps_session_core_ended(struct ps_session_core *core, struct ps_failure *failure);

/** A request was answered with an error: it is repeated in the next session, or fails. */
void ps_session_core_request_failed(struct ps_session_core *core,
                                    struct ps_session_request *request,
                                    struct ps_failure *failure);

/** Removes a request whose call has ended. */
void ps_session_core_request_ended(struct ps_session_core *core,
                                   struct ps_session_request *request);

/** Stops renewing and joining. */
void ps_session_core_stop(struct ps_session_core *core);

/** Drops failures and waiting requests without calling any command. */
void ps_session_core_release(struct ps_session_core *core);

#endif
