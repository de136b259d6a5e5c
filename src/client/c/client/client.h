#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

/* A client: how its parts are connected, its handle, and what it knows of its job. */

#include "records/records.h"

/**
 * An initialization of a parameter by this client that has failed, so that some of its blocks may be stored.
 * Only the selected session writes under an epoch, so if it is repeated with the same values, a block that is
 * initialized already was stored by this client. Used on the I/O thread only.
 */
struct ps_open_init {
  struct ps_open_init *next;
  uint64_t epoch;
  /** Checksum of the values sent; `has_several`: attempts had different values. */
  uint32_t crc;
  bool has_several;
  size_t name_bytes;
  char name[];
};

/** Lists of failed initializations, by the hash of the parameter's name: a power of two of them. */
#define PS_OPEN_INIT_BUCKETS 1024

/** A trainer's part in the rounds of fragments. Used on the I/O thread only. All zeros: none. */
struct ps_rounds {
  /** The session in which hosts have made the trainer a member; 0: it is none. */
  uint64_t member_session;
  /** How often the trainer has asked to exit. */
  uint64_t exits;
  /** Number of the last contribution. */
  uint64_t contributions;
  /** By shard: whether a contribution has its turn, and those that wait for theirs. One goes after the other, because
   * hosts keep the parts of one. */
  bool is_taken[PS_SHARDS_MAX];
  struct ps_queue waiting[PS_SHARDS_MAX];
};

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
  /** Carries records, reads and their answers. */
  struct ps_connection connection;
  struct ps_connection_listener connection_listener;
  /** Carries what keeps the trainer in the job, which must not wait behind megabytes: renewals, lifecycle, steps. */
  struct ps_connection control;
  struct ps_connection_listener control_listener;
  /** Whether it was opened, so that it is this client's to close. */
  bool has_control;
  struct ps_parameters parameters;

  struct ps_requests requests;
  struct ps_requests control_requests;
  struct ps_positions positions;
  struct ps_positions_listener positions_listener;
  /** By shard: the last position seen in a replaced journal, until pserver_fallbacks() has reported the
   * loss. */
  struct ps_position replaced_seen[PS_SHARDS_MAX];
  struct ps_session session;
  /**
   * Whether the connection for records is back, but no host has said since that the broker holds the same job: a record
   * must not get into another one.
   */
  bool awaits_host;
  struct ps_update_sender sender;
  struct ps_steps steps;
  struct ps_rounds rounds;
  /** Epoch of the initialization that this trainer is selected for; 0 if it is not. */
  uint64_t init_epoch;
  struct ps_open_init *open_inits[PS_OPEN_INIT_BUCKETS];
};

/** Finds the client of a handle and takes a reference, to be dropped with ps_client_release(). CLOSED. */
pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct ps_client **client);
void ps_client_release(struct ps_client *client);

/**
 * Begins a call on a handle. `timeout_ms` PSERVER_TIMEOUT_DEFAULT stands for `default_ms`, or for the
 * client's timeout if that is 0. CLOSED, BAD_VALUE, or the error that ended the client.
 */
pserver_status ps_call_begin(struct ps_call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms);

/** Ends a call and drops its reference to the client; returns the status. */
pserver_status ps_call_end(struct ps_call *call, pserver_status status);

/**
 * Leaves the counts of a client, whose I/O thread has ended, in the directory that PSERVER_STATS_DIR names, if it names
 * one.
 */
void ps_stats_leave(struct ps_client *client);

/** The job's state, and parameters, from a reply. */
struct ps_job_status {
  pserver_state state;
  uint64_t epoch;
  uint64_t shards;
  char by[PS_ID_SIZE];
  bool has_more;
  /** The ends of the journals when the job became ready; empty before. */
  pserver_position at[PSERVER_SHARDS_MAX];
  size_t at_count;
  /** Memory for `capacity` parameters; receives `count`, NULL for an unknown name. */
  struct ps_parameter **parameters;
  size_t capacity;
  size_t count;
};

/** Returns how many parameters a request may name, given the broker's largest message. On any thread. */
size_t ps_parameters_per_request(struct ps_client *client);

/**
 * Finds the parameters with these names, in order, one reference each, to be dropped with
 * ps_parameters_unref(), also after an error. BAD_NAME, UNKNOWN_PARAMETER; NOT_INITIALIZED while the job or a
 * parameter is not initialized: at the end of the call if it `waits`, else at once.
 */
pserver_status ps_find_parameters(struct ps_call *call, const char *const *names, size_t count, bool waits,
                                  struct ps_parameter **found);

/** Asks for the state of the job, and for the named parameters or, if `names` is NULL, `capacity` of them
 * after a name. */
pserver_status ps_ask_status(struct ps_call *call, const char *const *names, size_t count,
                             const char *after, struct ps_job_status *status);

#endif
