#ifndef CALLS_SESSION_H
#define CALLS_SESSION_H

#include <pserver.h>
#include <pthread.h>

#include "core/session-core.h"
#include "core/steps-core.h"

struct call;
struct client;

/** What the reply to a join says of the job. */
struct job_terms {
  unsigned shards;
  struct ps_synchronization synchronization;
  uint64_t trainers;
  /** Whether gradients of a step are summed up, not averaged. */
  bool sums;
};

/**
 * Asks hosts for what the session core decides. What the core commands is noted here, and done by the
 * thread of the lease.
 */
struct session {
  struct ps_session_core core;
  struct ps_session_commands commands;
  struct ps_session_listener listener;
  struct job_terms terms;
  /** Time for the join or renewal to be done; 0 if there is none to be done. */
  int64_t rejoin_ms;
  int64_t renew_ms;
  /** When the core wants ps_session_core_renewal_due(); NEVER_MS if it does not. */
  int64_t renewal_at_ms;
  bool has_thread;
  /** What the thread waits on; NULL while it does not run. */
  struct call *lease_call;
  pthread_t thread;
};

/** Sets up the session of a client that has not joined. */
void ps_session_init(struct client *client);

/** Joins the job under a new session. NO_HOST if no host answers in time. */
pserver_status ps_join_job(struct call *call);

/** Renews or joins again if the core wants that now; false if it does not. Lock held, released while it
 * asks. */
bool ps_keep_session(struct client *client);

/** Has the thread look at what is due. Lock held. */
void ps_wake_lease(struct client *client);

/** Starts and stops the thread that keeps the session. */
pserver_status ps_start_lease(struct client *client);
void ps_stop_lease(struct client *client);

/** Gives the lease back. Without an answer it expires by itself. */
pserver_status ps_leave_job(struct client *client);

#endif
