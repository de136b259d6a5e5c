#ifndef CALLS_CLIENT_H
#define CALLS_CLIENT_H

#include <pserver.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "push/push.h"
#include "wire/wire.h"

/**
 * A parameter whose initialization by this client has failed, so that some of its blocks may be stored.
 * Only the selected session writes under an epoch, so in a repeat with the same values, a block that is
 * initialized already was stored by this client. Used on the I/O thread only.
 */
struct ps_open_init {
  struct ps_open_init *next;
  char *name;
  size_t name_bytes;
  uint64_t epoch;
  /** Checksum of the values sent; `has_several`: attempts had different values. */
  uint32_t crc;
  bool has_several;
};

/** Forgets all parameters. */
void ps_release_open_inits(struct ps_open_init **open);

/**
 * A client. While its I/O thread runs, only that thread uses the fields after `parameters`, except atomic
 * ones. Calling threads give it tasks and wait.
 */
struct ps_client {
  /** The value of the handle, unique in the process. */
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
  /** By shard: the last position seen in a replaced journal, until pserver_fallbacks() has reported the
   * loss. */
  struct ps_position replaced_seen[PS_SHARDS_MAX];
  struct ps_session session;
  struct ps_update_sender sender;
  struct ps_steps steps;
  /** Whether blocks are read one by one, because the broker's permissions prevent batched reads. Atomic. */
  bool reads_singly;
  /** Epoch of the initialization that this trainer is selected for; 0 if it is not. */
  uint64_t init_epoch;
  struct ps_open_init *open_inits;
};

/** CLOSED in a forked child, where the threads of cnats and of this library do not exist. */
pserver_status ps_check_process(const char *what);
/** The same, and notes that this process has connected. To be called before cnats is first used. */
pserver_status ps_claim_process(const char *what);

/** Registers a client; returns its handle. */
pserver_client *ps_client_publish(struct ps_client *client);
/** Removes a client from the registry; false if another thread has done so. */
bool ps_client_unpublish(struct ps_client *client);

/** Finds the client of a handle and takes a reference, to be dropped with ps_client_release(). CLOSED. */
pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct ps_client **client);
void ps_client_retain(struct ps_client *client);
void ps_client_release(struct ps_client *client);

/**
 * Begins a call on a handle. `timeout_ms` PSERVER_TIMEOUT_DEFAULT stands for `default_ms`, or for the
 * client's timeout if that is 0. CLOSED, BAD_VALUE, or the error that ended the client.
 */
pserver_status ps_call_begin(struct ps_call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms);

/** Ends a call and drops its reference to the client; returns the status. */
pserver_status ps_call_end(struct ps_call *call, pserver_status status);

#endif
