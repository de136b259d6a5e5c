#ifndef CALLS_CLIENT_H
#define CALLS_CLIENT_H

#include <nats/nats.h>
#include <pserver.h>
#include <pthread.h>

#include "calls/call.h"
#include "calls/open-inits.h"
#include "calls/parameters.h"
#include "calls/session.h"
#include "core/position.h"
#include "errors/errors.h"
#include "push/steps.h"
#include "push/update-sender.h"
#include "wire/names.h"

#define INBOX_SIZE 192
/** Bytes of a subject: job, shard, escaped trainer and parameter, and the words between. */
#define SUBJECT_SIZE 384

/**
 * A client behind a handle. `lock` guards everything that changes but the connection, and is never
 * held while something is published: that can block, and the broker's messages need the lock.
 * Messages and events of the broker come on threads of cnats; the lease has a thread of its own;
 * everything else happens on the threads that call.
 */
struct client {
  /** The value of the handle; no other client of the process ever has it. */
  uint64_t number;
  struct client *next;
  unsigned references;

  char job[JOB_BYTES_MAX + 1];
  char trainer[ID_SIZE];
  /** The trainer's id as a token. */
  char id[ID_SIZE];
  char inbox[INBOX_SIZE];
  int64_t call_timeout_ms;
  size_t in_flight_max;

  natsConnection *connection;
  natsSubscription *subscription;

  pthread_mutex_t lock;
  /** Signalled when the last call has left. */
  pthread_cond_t idle;
  /** The error that ended the client; code OK while it works. */
  struct failure failure;
  bool is_closing;
  bool is_connected;
  /** How often the connection was made: a call that sees another number repeats what it waits for. */
  uint64_t connections;
  struct call *calls;
  unsigned running;
  uint64_t calls_made;
  uint64_t tokens;
  /** Epoch of the initialization this trainer was selected for; 0 if it is not. */
  uint64_t init_epoch;
  struct open_init *open_inits;
  /** Bytes of the replies that requests under way ask for. */
  size_t pull_bytes;

  struct ps_positions positions;
  struct ps_positions_listener positions_listener;
  /** Last position seen of each replaced journal, until pserver_fallbacks() has told what was lost. */
  struct position left[PS_SHARDS_MAX];
  struct session session;
  struct update_sender sender;
  struct steps steps;
  struct parameters parameters;
};

/** CLOSED in a forked child: the threads of cnats and of this library do not exist there. */
pserver_status ps_check_process(const char *what);
/** The same, and makes this the process that has connected: before cnats is used for the first time. */
pserver_status ps_claim_process(const char *what);

/** Gives a client its handle. */
pserver_client *ps_client_publish(struct client *client);
/** Takes the handle away; false if another thread was faster. */
bool ps_client_unpublish(struct client *client);

/** The client of a handle, to be given back with ps_client_release(). CLOSED, with a message. */
pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct client **client);
void ps_client_retain(struct client *client);
void ps_client_release(struct client *client);

/** Ends every call, now and later, with this error; only the first counts. Lock held. */
void ps_client_fail(struct client *client, pserver_status code, const char *text);

/** Takes a position into account that was seen. Lock held. */
void ps_note_position(struct client *client, uint64_t shard, struct position position);

/** The same of one that reads must have reached, though nothing of it was seen. Lock held. */
void ps_await_position(struct client *client, uint64_t shard, struct position position);

/**
 * Takes JOURNAL_REPLACED into account: positions of the old generation mean nothing any more. The message
 * names where the new journal stands. Lock held.
 */
void ps_note_replaced(struct client *client, unsigned shard, const struct message *message);

/** The position in a shard, its beginning if nothing was seen. Lock held. */
struct position ps_position_of(const struct client *client, uint64_t shard);

#endif
