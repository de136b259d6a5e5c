#ifndef CALLS_SESSION_H
#define CALLS_SESSION_H

#include <pserver.h>
#include <pthread.h>

#include "wire/envelope.h"

struct call;
struct client;

/** How the job's trainers go together. */
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
  /** A host has said that it is over: the thread joins anew. */
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

/** A host says, by the last error, that the session is over: REJOIN has the thread begin a new one,
 * SUPERSEDED ends the client. Lock held. */
void ps_on_session_over(struct client *client, pserver_status status);

/** Has the thread look at what is due. Lock held. */
void ps_wake_lease(struct client *client);

/** Starts and stops the thread that renews the lease every third of its time and rejoins. */
pserver_status ps_start_lease(struct client *client);
void ps_stop_lease(struct client *client);

/** Gives the lease back. Without an answer, whatever the reason, it runs out by itself. */
pserver_status ps_leave_job(struct client *client);

#endif
