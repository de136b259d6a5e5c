#ifndef PUSH_STEP_REQUESTS_H
#define PUSH_STEP_REQUESTS_H

#include "core/positions.h"
#include "core/steps-core.h"
#include "wire/identity.h"
#include "wire/requests.h"

/** Dependencies of requests for the last closed step. */
struct ps_step_request_deps {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_positions *positions;
  struct ps_steps_core *core;
};

/** A request to one shard, on the I/O thread. */
struct ps_step_request {
  const struct ps_step_request_deps *deps;
  struct ps_step_call *call;
  unsigned shard;
  uint64_t revision;
  /** The answer: the last step that has closed. */
  uint64_t closed;
  struct ps_ask ask;
  struct ps_ask_group group;
};

/**
 * Asks a shard for its last closed step, to be answered once it knows this revision of the members and has
 * closed the step that the call waits for. Raises `step_answered` or `ask_failed`. The owner ends the
 * request by ps_ask_group_end(), at `ends_at_ms` at the latest.
 */
void ps_ask_for_step(const struct ps_step_request_deps *deps, struct ps_step_request *request,
                     struct ps_step_call *call, unsigned shard, uint64_t revision,
                     int64_t ends_at_ms);

#endif
