#ifndef CALLS_SESSION_H
#define CALLS_SESSION_H

#include "calls/lifecycle-request.h"
#include "core/steps-core.h"

/** The first version of the rules that knows batches. */
#define PS_RULES_WITH_BATCHES 3

/** The first version of the rules that knows notes. */
#define PS_RULES_WITH_NOTES 4

/** Settings of the job, from the reply to a join. */
struct ps_job_terms {
  unsigned shards;
  /** All journals of the job have this version of the rules, or a newer one. */
  uint64_t rules;
  struct ps_synchronization synchronization;
  uint64_t trainers;
  /** Whether the gradients of a step are summed, not averaged. */
  bool sums;
};

/** Dependencies of a session. */
struct ps_session_deps {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_timers *timers;
  void *owner;
  /** The session has ended: nothing may be published under it. */
  void (*ended)(void *owner);
  /** A session has begun, the first or a later one. */
  void (*began)(void *owner, uint64_t session, const struct ps_job_terms *terms, int64_t now_ms);
  /** The client can do nothing more. */
  void (*lost)(void *owner, pserver_status code, const char *text);
};

struct ps_session;

/** One attempt to join; hosts recognize its repeats by the token. */
struct ps_join {
  struct ps_session *session;
  char token[40];
  uint64_t number;
  int64_t lease_ms;
  struct ps_job_terms terms;
};

/** A request that no call waits for. */
struct ps_background_request {
  struct ps_lifecycle_request request;
  struct ps_timer deadline;
  int64_t timeout_ms;
  bool is_under_way;
};

/** Carries out the commands of the session core: requests and timers. Used on the I/O thread. */
struct ps_session {
  struct ps_session_deps deps;
  struct ps_lifecycle lifecycle;
  struct ps_session_core core;
  struct ps_session_commands commands;
  struct ps_session_listener listener;
  struct ps_job_terms terms;
  /** The rules in `terms`, for other threads. Atomic. */
  uint64_t rules;
  struct ps_timer renewal;
  struct ps_background_request renewing;
  struct ps_background_request joining;
  struct ps_join join;
};

/** Initializes the session of a client that has not joined. */
void ps_session_init(struct ps_session *session, const struct ps_session_deps *deps);

/** Joins the job in a new session, and waits. NO_HOST if no host answers in time. */
pserver_status ps_join_job(struct ps_call *call, struct ps_session *session);

/** Gives the lease back, and waits. Without an answer it expires by itself. */
pserver_status ps_leave_job(struct ps_call *call, struct ps_session *session);

/** Returns the version of the job's rules as of the last join; 0 before the first. On any thread. */
uint64_t ps_session_rules(const struct ps_session *session);

/** Whether the job's rules know batches. On any thread. */
bool ps_session_takes_batches(const struct ps_session *session);

/** Stops renewing and joining. On the I/O thread. */
void ps_session_stop(struct ps_session *session);

#endif
