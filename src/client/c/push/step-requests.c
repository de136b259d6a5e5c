/* Messages of steps: questions for the closed step of shards, and clocks that say which steps this trainer
 * has ended. */
#include "push/step-requests.h"

#include <stdio.h>
#include <stdlib.h>

#include "push/call-error.h"
#include "push/parameter-update.h"
#include "wire/requests.h"

/** The server gives up just before a request is repeated, so that it never holds two of one. */
#define WAIT_MS 900

struct question {
  unsigned shard;
  uint64_t revision;
  /** The call that asks, and whose shards are unanswered. */
  struct ps_step_call *step_call;
  bool *unanswered;
};

static pserver_status write_question(struct call *call, struct ask *ask, struct draft *draft) {
  const struct question *question = ask->context;
  int64_t left = ps_call_remaining_ms(call);
  pthread_mutex_lock(&call->client->lock);
  struct position position = ps_position_of(call->client, question->shard);
  uint64_t step = ps_steps_core_wanted_step(&call->client->steps.core, question->step_call);
  pthread_mutex_unlock(&call->client->lock);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "revision", question->revision);
  ps_draft_whole(draft, "step", step);
  ps_draft_whole(draft, "waitMs", (uint64_t)(left < WAIT_MS ? left : WAIT_MS));
  return ps_draft_end(draft);
}

static pserver_status read_answer(struct call *call, struct ask *ask, const struct message *message) {
  const struct question *question = ask->context;
  struct client *client = call->client;
  const struct value *fields = &message->fields;
  struct position position;
  uint64_t closed;
  if (!ps_map_whole(fields, "generation", &position.generation) ||
      !ps_map_whole(fields, "seq", &position.seq) || !ps_map_whole(fields, "step", &closed)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "step: expected how far the shard is; received another reply");
  }
  question->unanswered[question->shard] = false;
  pthread_mutex_lock(&client->lock);
  ps_note_position(client, question->shard, position);
  ps_steps_core_step_answered(&client->steps.core, question->step_call, question->shard, closed);
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

static pserver_status no_owner(struct call *call, struct ask *ask) {
  (void)call;
  const struct question *question = ask->context;
  return ps_fail(PSERVER_ERR_NO_OWNER, "no host serves shard %u", question->shard);
}

static pserver_status refused(struct call *call, struct ask *ask, pserver_status status,
                              const struct message *message) {
  const struct question *question = ask->context;
  if (ps_reaction_to(status) != PS_REACTION_REPLACED || message == NULL) return status;
  pthread_mutex_lock(&call->client->lock);
  ps_note_replaced(call->client, question->shard, message);
  pthread_mutex_unlock(&call->client->lock);
  return PSERVER_OK;
}

/** Asks all shards together. */
static pserver_status ask_all(struct call *call, struct question question) {
  struct client *client = call->client;
  struct ask *asks = calloc(PS_SHARDS_MAX, sizeof *asks);
  struct question *questions = calloc(PS_SHARDS_MAX, sizeof *questions);
  size_t count = 0;
  pserver_status status = asks == NULL || questions == NULL
                              ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for questions")
                              : PSERVER_OK;
  for (unsigned shard = 0; shard < PS_SHARDS_MAX && status == PSERVER_OK; shard++) {
    if (!question.unanswered[shard]) continue;
    questions[count] = question;
    questions[count].shard = shard;
    asks[count] = (struct ask){.write = write_question,
                               .read = read_answer,
                               .nobody = no_owner,
                               .refused = refused,
                               .context = &questions[count]};
    snprintf(asks[count].subject, sizeof asks[count].subject, "ps.%s.shard.%u.%s.step", client->job,
             shard, client->id);
    count++;
  }
  if (status == PSERVER_OK) status = ps_run_requests(call, asks, count);
  free(asks);
  free(questions);
  return status;
}

void ps_ask_for_step(struct call *call, struct ps_step_call *step_call, bool shards[PS_SHARDS_MAX],
                     uint64_t revision) {
  struct client *client = call->client;
  struct question question = {.revision = revision, .step_call = step_call, .unanswered = shards};
  if (ask_all(call, question) == PSERVER_OK) return;
  struct ps_failure *failure = ps_failure_of_last();
  pthread_mutex_lock(&client->lock);
  for (unsigned shard = 0; shard < PS_SHARDS_MAX; shard++) {
    if (shards[shard]) ps_steps_core_ask_failed(&client->steps.core, step_call, failure);
    shards[shard] = false;
  }
  pthread_mutex_unlock(&client->lock);
  ps_failure_drop(failure);
}

pserver_status ps_send_clocks(struct call *call, uint64_t step) {
  const struct parameter_update clock = {.operation = UPDATE_CLOCK};
  pthread_mutex_lock(&call->client->lock);
  size_t shards = call->client->session.terms.shards;
  pthread_mutex_unlock(&call->client->lock);
  struct call_updates updates = {.count = shards,
                                 .sources = calloc(shards, sizeof(struct update_source))};
  if (updates.sources == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for clocks");
  for (size_t shard = 0; shard < shards; shard++) {
    updates.sources[shard] =
        (struct update_source){.update = &clock, .shard = (unsigned)shard, .step = step};
  }
  pserver_status status = ps_send_sources(call, &updates);
  free(updates.sources);
  return status;
}
