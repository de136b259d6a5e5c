#ifndef CALLS_PARAMETERS_H
#define CALLS_PARAMETERS_H

#include <pserver.h>

#include "calls/call.h"
#include "calls/parameter-cache.h"
#include "core/position.h"
#include "wire/envelope.h"

/** The maximum number of parameters that one request names. */
#define PS_PARAMETERS_PER_REQUEST_MAX 256

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
 * ps_parameters_unref(), also after an error. BAD_NAME, UNKNOWN_PARAMETER; NOT_INITIALIZED while the job or
 * a parameter is not initialized: at once, or, if it `waits`, at the end of the call.
 */
pserver_status ps_find_parameters(struct ps_call *call, const char *const *names, size_t count, bool waits,
                                  struct ps_parameter **found);

/** Asks for the state of the job, and for the named parameters or, if `names` is NULL, `capacity` of them
 * after a name. */
pserver_status ps_ask_status(struct ps_call *call, const char *const *names, size_t count,
                             const char *after, struct ps_job_status *status);

/** Reads the parameters in a reply, at most `capacity`. BAD_MESSAGE, INTERNAL. */
pserver_status ps_read_parameter_list(const struct ps_message *message, struct ps_parameter **parameters,
                                      size_t capacity, size_t *count);

/** Reads the state of the job, or of a parameter. BAD_MESSAGE. */
pserver_status ps_read_state(const struct ps_value *fields, pserver_state *state);

#endif
