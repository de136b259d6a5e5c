#ifndef PUSH_STEP_REQUESTS_H
#define PUSH_STEP_REQUESTS_H

#include "core/positions.h"
#include "core/steps-core.h"
#include "wire/identity.h"
#include "wire/requests.h"

/** Dependencies of questions for the closed step of shards. */
struct ps_step_request_deps {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_positions *positions;
  struct ps_steps_core *core;
};

/** A question to one shard, on the I/O thread. */
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
 * Asks a shard how far it is once it knows this revision of the members and has closed the step that
 * the call waits for; raises `step_answered` or `ask_failed`. Ended by ps_asking_end(), else at a time.
 */
void ps_ask_for_step(const struct ps_step_request_deps *deps, struct ps_step_request *request,
                     struct ps_step_call *call, unsigned shard, uint64_t revision,
                     int64_t ends_at_ms);

#endif
