/* Questions for the closed step of shards. */
#include "push/step-requests.h"

#include <stdio.h>

#include "wire/core-failure.h"
#include "errors/errors.h"

static pserver_status write_question(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_step_question *question = ask->context;
  struct ps_position position = ps_positions_get(question->deps->positions, question->shard);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "revision", question->revision);
  ps_draft_whole(draft, "step", ps_steps_core_wanted_step(question->deps->core, question->call));
  ps_draft_whole(draft, "waitMs", ps_asking_wait_ms(&question->asking));
  return ps_draft_end(draft);
}

static pserver_status read_answer(struct ps_ask *ask, const struct ps_message *message) {
  struct ps_step_question *question = ask->context;
  const struct ps_value *fields = &message->fields;
  struct ps_position position;
  if (!ps_map_position(fields, &position) || !ps_map_whole(fields, "step", &question->closed)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "step: expected how far the shard is; received another reply");
  }
  ps_positions_note(question->deps->positions, question->shard, position);
  return PSERVER_OK;
}

static pserver_status no_owner(struct ps_ask *ask) {
  const struct ps_step_question *question = ask->context;
  return ps_fail(PSERVER_ERR_NO_OWNER, "no host serves shard %u", question->shard);
}

static pserver_status refused(struct ps_ask *ask, pserver_status status, const struct ps_message *message) {
  const struct ps_step_question *question = ask->context;
  if (ps_reaction_to(status) != PS_REACTION_REPLACED || message == NULL) return status;
  ps_positions_note_replaced(question->deps->positions, question->shard,
                             ps_expected_position(message).generation);
  return PSERVER_OK;
}

static void on_over(struct ps_asking *asking, pserver_status status) {
  const struct ps_step_question *question = asking->context;
  struct ps_steps_core *core = question->deps->core;
  if (status == PSERVER_OK) {
    ps_steps_core_step_answered(core, question->call, question->shard, question->closed);
    return;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_steps_core_ask_failed(core, question->call, failure);
  ps_failure_drop(failure);
}

void ps_ask_for_step(const struct ps_step_question_deps *deps, struct ps_step_question *question,
                     struct ps_step_call *call, unsigned shard, uint64_t revision,
                     int64_t ends_at_ms) {
  *question = (struct ps_step_question){
      .deps = deps,
      .call = call,
      .shard = shard,
      .revision = revision,
      .ask = {.write = write_question,
              .read = read_answer,
              .nobody = no_owner,
              .refused = refused,
              .context = question},
      .asking = {.asks = &question->ask,
                 .count = 1,
                 .ends_at_ms = ends_at_ms,
                 .over = on_over,
                 .context = question},
  };
  snprintf(question->ask.subject, sizeof question->ask.subject, "ps.%s.shard.%u.%s.step",
           deps->identity->job, shard, deps->identity->id);
  ps_asking_begin(deps->requests, &question->asking);
}
