#ifndef CORE_SESSION_CORE_H
#define CORE_SESSION_CORE_H

#include "core/commands.h"
#include "core/failure.h"
#include "core/session-request.h"

/**
 * One life of a trainer as a sequence of sessions: joins, renews the lease every third of its time, joins
 * again when a host says REJOIN, and ends for good when a newer session of the same trainer has joined.
 *
 * At most one attempt to join again is under way. While it is, requests that found the session ended wait
 * for its result, and a SUPERSEDED does not count yet: it may be of the session being joined.
 *
 * It begins as zeros but for `commands` and `listener`, and needs no memory.
 */
struct ps_session_core {
  const struct ps_session_commands *commands;
  const struct ps_session_listener *listener;
  /** Requests that wait for another session, the first of them first. */
  struct ps_session_request *first_waiting;
  struct ps_session_request *last_waiting;
  /** The number of the session; 0 before the first. */
  uint64_t session;
  int64_t lease_ms;
  bool is_rejoining;
  /** Whether the client can go on only if the attempt to join again succeeds. */
  bool is_rejoin_needed;
  /** A SUPERSEDED heard while joining again. */
  struct ps_failure *superseded;
  /** Whether no session is renewed or joined any more. */
  bool is_stopped;
};

/** A session has begun, the first or a later one. */
void ps_session_core_joined(struct ps_session_core *core, uint64_t session, int64_t lease_ms,
                            int64_t now_ms);

/** An attempt to join again has failed. It is repeated if that can help. */
void ps_session_core_rejoin_failed(struct ps_session_core *core, struct ps_failure *failure);

/** The time of `set_renewal` has come. */
void ps_session_core_renewal_due(struct ps_session_core *core);

/** The lease has been renewed. */
void ps_session_core_renewed(struct ps_session_core *core, int64_t now_ms);

/** The lease could not be renewed. */
void ps_session_core_renew_failed(struct ps_session_core *core, struct ps_failure *failure,
                                  int64_t now_ms);

/** A host says that a session is over: REJOIN begins another one, SUPERSEDED is final. */
void ps_session_core_ended(struct ps_session_core *core, struct ps_failure *failure);

/** A request was answered with an error: it is asked again in the next session, or fails. */
void ps_session_core_request_failed(struct ps_session_core *core,
                                    struct ps_session_request *request,
                                    struct ps_failure *failure);

/** The call that a request belongs to has ended. */
void ps_session_core_request_ended(struct ps_session_core *core,
                                   struct ps_session_request *request);

/** Renews and joins no more. */
void ps_session_core_stop(struct ps_session_core *core);

/** Lets go of failures and of requests that wait, without any command. */
void ps_session_core_release(struct ps_session_core *core);

#endif
