/* Messages of steps: questions for the closed step of shards, and clocks that say which steps this trainer
 * has ended. */
#include "push/step-requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "push/parameter-update.h"
#include "wire/requests.h"

/** The server gives up just before a request is repeated, so that it never holds two of one. */
#define WAIT_MS 900

struct question {
  unsigned shard;
  uint64_t revision;
  uint64_t step;
  /** The answer: the last step that has closed. */
  uint64_t closed;
};

static pserver_status write_question(struct call *call, struct ask *ask, struct draft *draft) {
  const struct question *question = ask->context;
  int64_t left = ps_call_remaining_ms(call);
  pthread_mutex_lock(&call->client->lock);
  struct position position = ps_position_of(call->client, question->shard);
  /* After a fallback nobody closes the step before this trainer has entered anew. */
  uint64_t step = ps_is_member(call->client) ? question->step : 0;
  pthread_mutex_unlock(&call->client->lock);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "revision", question->revision);
  ps_draft_whole(draft, "step", step);
  ps_draft_whole(draft, "waitMs", (uint64_t)(left < WAIT_MS ? left : WAIT_MS));
  return ps_draft_end(draft);
}

static pserver_status read_answer(struct call *call, struct ask *ask, const struct message *message) {
  struct question *question = ask->context;
  struct client *client = call->client;
  const struct value *fields = &message->fields;
  struct position position;
  if (!ps_map_whole(fields, "generation", &position.generation) ||
      !ps_map_whole(fields, "seq", &position.seq) || !ps_map_whole(fields, "step", &question->closed)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "step: expected how far the shard is; received another reply");
  }
  pthread_mutex_lock(&client->lock);
  ps_note_position(client, question->shard, position);
  if (question->closed > client->steps.closed[question->shard]) {
    client->steps.closed[question->shard] = question->closed;
  }
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

pserver_status ps_ask_for_step(struct call *call, const bool shards[PS_SHARDS_MAX], uint64_t revision,
                               uint64_t step, uint64_t *most, uint64_t *least) {
  struct client *client = call->client;
  struct ask *asks = calloc(PS_SHARDS_MAX, sizeof *asks);
  struct question *questions = calloc(PS_SHARDS_MAX, sizeof *questions);
  size_t count = 0;
  pserver_status status = asks == NULL || questions == NULL
                              ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for questions")
                              : PSERVER_OK;
  for (unsigned shard = 0; shard < PS_SHARDS_MAX && status == PSERVER_OK; shard++) {
    if (!shards[shard]) continue;
    questions[count] = (struct question){.shard = shard, .revision = revision, .step = step};
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
  *most = 0;
  *least = UINT64_MAX;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    if (questions[i].closed > *most) *most = questions[i].closed;
    if (questions[i].closed < *least) *least = questions[i].closed;
  }
  free(asks);
  free(questions);
  return status;
}

pserver_status ps_send_clocks(struct call *call, uint64_t step) {
  struct parameter_update update = {.operation = UPDATE_CLOCK, .step = step};
  pthread_mutex_lock(&call->client->lock);
  size_t shards = (size_t)call->client->session.shards;
  pthread_mutex_unlock(&call->client->lock);
  struct call_updates updates = {.count = shards,
                                 .sources = calloc(shards, sizeof(struct update_source))};
  if (updates.sources == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for clocks");
  for (size_t shard = 0; shard < shards; shard++) {
    updates.sources[shard].update = &update;
    updates.sources[shard].shard = (unsigned)shard;
  }
  pserver_status status = ps_send_call(call, &updates);
  free(updates.sources);
  return status;
}
