#ifndef CALLS_CLIENT_H
#define CALLS_CLIENT_H

#include <pserver.h>

#include "calls/call.h"
#include "calls/open-inits.h"
#include "calls/parameter-cache.h"
#include "calls/session.h"
#include "push/steps.h"
#include "push/update-sender.h"
#include "wire/connection.h"
#include "wire/identity.h"
#include "wire/requests.h"

/**
 * A client behind a handle. Its I/O thread owns what follows `parameters`: nothing else touches that
 * while the thread runs. Threads that call hand it tasks, and wait.
 */
struct ps_client {
  /** The value of the handle; no other client of the process ever has it. */
  uint64_t number;
  struct ps_client *next;
  unsigned references;

  struct ps_identity identity;
  int64_t call_timeout_ms;
  struct ps_io_thread io;
  struct ps_calls calls;
  struct ps_connection connection;
  struct ps_connection_listener connection_listener;
  struct ps_parameters parameters;

  struct ps_requests requests;
  struct ps_positions positions;
  struct ps_positions_listener positions_listener;
  /** Last position seen of each replaced journal, until pserver_fallbacks() has told what was lost. */
  struct ps_position replaced_seen[PS_SHARDS_MAX];
  struct ps_session session;
  struct ps_update_sender sender;
  struct ps_steps steps;
  /** Whether the broker's permissions keep batched reads from being sent or received. Atomic. */
  bool reads_singly;
  /** Epoch of the initialization this trainer was selected for; 0 if it is not. */
  uint64_t init_epoch;
  struct ps_open_init *open_inits;
};

/** CLOSED in a forked child: the threads of cnats and of this library do not exist there. */
pserver_status ps_check_process(const char *what);
/** The same, and makes this the process that has connected: before cnats is used for the first time. */
pserver_status ps_claim_process(const char *what);

/** Gives a client its handle. */
pserver_client *ps_client_publish(struct ps_client *client);
/** Takes the handle away; false if another thread was faster. */
bool ps_client_unpublish(struct ps_client *client);

/** The client of a handle, to be given back with ps_client_release(). CLOSED, with a message. */
pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct ps_client **client);
void ps_client_retain(struct ps_client *client);
void ps_client_release(struct ps_client *client);

/**
 * Begins a call on a handle. `timeout_ms` PSERVER_TIMEOUT_DEFAULT stands for `default_ms`, or for the
 * client's timeout if that is 0. CLOSED, BAD_VALUE, or the error that ended the client.
 */
pserver_status ps_call_begin(struct ps_call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms);

/** Ends it; returns the status. */
pserver_status ps_call_end(struct ps_call *call, pserver_status status);

#endif
