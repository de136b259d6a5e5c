#ifndef CALLS_SESSION_H
#define CALLS_SESSION_H

#include <pserver.h>
#include <pthread.h>

#include "wire/envelope.h"

struct call;
struct client;

/** How the trainers of the job are synchronized. */
enum synchronization { TOGETHER_ASYNC, TOGETHER_SYNC, TOGETHER_SSP };

/** One life of a trainer. */
struct session {
  /** 0 before the first. */
  uint64_t number;
  uint64_t shards;
  int64_t lease_ms;
  int64_t max_payload_bytes;
  enum synchronization synchronization;
  uint64_t staleness;
  uint64_t backups;
  uint64_t trainers;
  /** Whether gradients of a step are summed up, not averaged. */
  bool sums;
  /** Whether a host has said that the session is over: the thread rejoins. */
  bool is_ended;
  bool is_stopped;
  bool has_thread;
  /** What the thread waits on; NULL while it does not run. */
  struct call *lease_call;
  pthread_t thread;
};

/** Writes the entries of a request, after `session`. */
typedef void (*write_entries)(void *context, struct draft *draft);
/** Reads the reply. */
typedef pserver_status (*read_reply)(struct call *call, void *context, const struct message *message);

/** Joins the job under a new session. NO_HOST if no host answers in time. */
pserver_status ps_join_job(struct call *call);

/**
 * A lifecycle request. Waits for a new session and asks again if this one has ended. The error in the
 * reply; NO_HOST if nobody answers in time. `read` may be NULL.
 */
pserver_status ps_request_lifecycle(struct call *call, const char *verb, write_entries write,
                                    read_reply read, void *context);

/** Handles an error that ends the session, which is the last error: REJOIN has the thread rejoin,
 * SUPERSEDED ends the client. Lock held. */
void ps_on_session_over(struct client *client, pserver_status status);

/** Has the thread look at what is due. Lock held. */
void ps_wake_lease(struct client *client);

/** Starts and stops the thread that renews the lease every third of its time and rejoins. */
pserver_status ps_start_lease(struct client *client);
void ps_stop_lease(struct client *client);

/** Gives the lease back. Without an answer it expires by itself. */
pserver_status ps_leave_job(struct client *client);

#endif
