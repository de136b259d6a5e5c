#ifndef CALLS_PARAMETERS_H
#define CALLS_PARAMETERS_H

#include <pserver.h>

#include "calls/call.h"
#include "calls/parameter-cache.h"
#include "core/position.h"
#include "wire/envelope.h"

/** Parameters named in one request, at most. */
#define PS_PARAMETERS_PER_REQUEST_MAX 256

/** The job's state, and parameters, as a host has told them. */
struct ps_job_status {
  pserver_state state;
  uint64_t epoch;
  uint64_t shards;
  char by[PS_ID_SIZE];
  bool has_more;
  /** Where the journals stood when it became ready; none before. */
  pserver_position at[PSERVER_SHARDS_MAX];
  size_t at_count;
  /** One each, NULL where nothing is known; `capacity` of them. */
  struct ps_parameter **parameters;
  size_t capacity;
  size_t count;
};

/** How many parameters one request can name, so that the broker takes it and its reply. On any thread. */
size_t ps_parameters_per_request(struct ps_client *client);

/**
 * The parameters with these names, in order, one reference each: to be given back with
 * ps_parameters_unref(), also after an error. BAD_NAME, UNKNOWN_PARAMETER; NOT_INITIALIZED while the
 * job or a parameter is not, at once, or, if it `waits`, at the end of the call.
 */
pserver_status ps_find_parameters(struct ps_call *call, const char *const *names, size_t count, bool waits,
                                  struct ps_parameter **found);

/** Asks for parameters: those named, or if `names` is NULL a page of `capacity` after a name. */
pserver_status ps_ask_status(struct ps_call *call, const char *const *names, size_t count,
                             const char *after, struct ps_job_status *status);

/** Parameters in a reply into a list with room for `capacity`. BAD_MESSAGE. */
pserver_status ps_read_parameter_list(const struct ps_message *message, struct ps_parameter **parameters,
                                      size_t capacity, size_t *count);

pserver_status ps_read_state(const struct ps_value *fields, pserver_state *state);

#endif
