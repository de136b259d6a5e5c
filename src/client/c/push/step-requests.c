/* Requests to shards for their last closed step. */
#include "push/step-requests.h"

#include <stdio.h>

#include "wire/core-failure.h"
#include "errors/errors.h"

static pserver_status write_request(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_step_request *request = ask->context;
  struct ps_position position = ps_positions_get(request->deps->positions, request->shard);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "revision", request->revision);
  ps_draft_whole(draft, "step", ps_steps_core_wanted_step(request->deps->core, request->call));
  ps_draft_whole(draft, "waitMs", ps_ask_group_wait_ms(&request->group));
  return ps_draft_end(draft);
}

static pserver_status read_answer(struct ps_ask *ask, const struct ps_message *message) {
  struct ps_step_request *request = ask->context;
  const struct ps_value *fields = &message->fields;
  struct ps_position position;
  if (!ps_map_position(fields, &position) || !ps_map_whole(fields, "step", &request->closed)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "step: expected the last closed step; received another reply");
  }
  ps_positions_note(request->deps->positions, request->shard, position);
  return PSERVER_OK;
}

static pserver_status no_owner(struct ps_ask *ask) {
  const struct ps_step_request *request = ask->context;
  return ps_fail(PSERVER_ERR_NO_OWNER, "no host serves shard %u", request->shard);
}

static pserver_status refused(struct ps_ask *ask, pserver_status status, const struct ps_message *message) {
  const struct ps_step_request *request = ask->context;
  if (ps_reaction_to(status) != PS_REACTION_REPLACED || message == NULL) return status;
  ps_positions_note_replaced(request->deps->positions, request->shard,
                             ps_expected_position(message).generation);
  return PSERVER_OK;
}

static void on_over(struct ps_ask_group *group, pserver_status status) {
  const struct ps_step_request *request = group->context;
  struct ps_steps_core *core = request->deps->core;
  if (status == PSERVER_OK) {
    ps_steps_core_step_answered(core, request->call, request->shard, request->closed);
    return;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_steps_core_ask_failed(core, request->call, failure);
  ps_failure_drop(failure);
}

void ps_ask_for_step(const struct ps_step_request_deps *deps, struct ps_step_request *request,
                     struct ps_step_call *call, unsigned shard, uint64_t revision,
                     int64_t ends_at_ms) {
  *request = (struct ps_step_request){
      .deps = deps,
      .call = call,
      .shard = shard,
      .revision = revision,
      .ask = {.write = write_request,
              .read = read_answer,
              .nobody = no_owner,
              .refused = refused,
              .context = request},
      .group = {.asks = &request->ask,
                .count = 1,
                .ends_at_ms = ends_at_ms,
                .over = on_over,
                .context = request},
  };
  snprintf(request->ask.subject, sizeof request->ask.subject, "ps.%s.shard.%u.%s.step",
           deps->identity->job, shard, deps->identity->id);
  ps_ask_group_begin(deps->requests, &request->group);
}
