/* Steps of jobs that are synchronized by them: who is a member, which step is open, when it ends. */
#include "push/steps.h"

#include <string.h>

#include "calls/client.h"
#include "push/step-requests.h"
#include "wire/clock.h"

bool ps_is_member(const struct client *client) {
  return client->steps.member != 0 && client->steps.member == client->session.number;
}

uint64_t ps_step_of_pulls(const struct client *client) {
  if (client->session.synchronization == TOGETHER_ASYNC || !ps_is_member(client)) return 0;
  bool is_stale = client->session.synchronization == TOGETHER_SSP;
  uint64_t staleness = is_stale ? client->session.staleness : 0;
  return client->steps.ended > staleness ? client->steps.ended - staleness : 0;
}

static enum synchronization mode_of(struct client *client) {
  pthread_mutex_lock(&client->lock);
  enum synchronization mode = client->session.synchronization;
  pthread_mutex_unlock(&client->lock);
  return mode;
}

/** Waits for the turn. */
static pserver_status take_turn(struct call *call) {
  struct client *client = call->client;
  pserver_status status;
  pthread_mutex_lock(&client->lock);
  while ((status = ps_call_check(call)) == PSERVER_OK && client->steps.is_taken) {
    ps_call_wait(call, NEVER_MS);
  }
  if (status == PSERVER_OK) client->steps.is_taken = true;
  pthread_mutex_unlock(&client->lock);
  return status;
}

static void release_turn(struct client *client) {
  pthread_mutex_lock(&client->lock);
  client->steps.is_taken = false;
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
}

/** A trainer that has lost its place enters anew at its next gradient. */
static pserver_status after(struct client *client, pserver_status status) {
  if (ps_reaction_to(status) != PS_REACTION_ENTER_ANEW) return status;
  pthread_mutex_lock(&client->lock);
  client->steps.member = 0;
  pthread_mutex_unlock(&client->lock);
  return status;
}

static pserver_status read_enter(struct call *call, void *context, const struct message *message) {
  (void)call;
  if (ps_map_whole(&message->fields, "revision", context)) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_BAD_MESSAGE, "enter: expected a revision; received another reply");
}

/** Becomes a member, unless this session is one, and comes up to the largest closed step. */
static pserver_status enter(struct call *call) {
  struct client *client = call->client;
  struct steps *steps = &client->steps;
  bool shards[PS_SHARDS_MAX] = {false};
  uint64_t revision;
  uint64_t most;
  uint64_t least;
  pthread_mutex_lock(&client->lock);
  bool is_in = ps_is_member(client);
  pthread_mutex_unlock(&client->lock);
  if (is_in) return PSERVER_OK;
  pserver_status status = ps_request_lifecycle(call, "enter", NULL, read_enter, &revision);
  if (status != PSERVER_OK) return status;
  pthread_mutex_lock(&client->lock);
  uint64_t session = client->session.number;
  for (uint64_t shard = 0; shard < client->session.shards; shard++) shards[shard] = true;
  pthread_mutex_unlock(&client->lock);
  status = ps_ask_for_step(call, shards, revision, 0, &most, &least);
  if (status != PSERVER_OK) return status;
  pthread_mutex_lock(&client->lock);
  /* What it has ended in an earlier membership stays ended. */
  if (most > steps->ended) steps->ended = most;
  uint64_t ended = steps->ended;
  pthread_mutex_unlock(&client->lock);
  if (least < ended) status = ps_send_clocks(call, ended);
  if (status != PSERVER_OK) return status;
  pthread_mutex_lock(&client->lock);
  steps->member = session;
  steps->revision = revision;
  steps->entered_in_step = true;
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

/** The shards of blocks in which the last ended step may be open still. */
static bool find_behind(struct client *client, const struct update_source *blocks, size_t count,
                        bool behind[PS_SHARDS_MAX]) {
  bool is_any = false;
  for (size_t i = 0; i < count; i++) {
    if (client->steps.closed[blocks[i].shard] >= client->steps.ended) continue;
    behind[blocks[i].shard] = true;
    is_any = true;
  }
  return is_any;
}

/** Waits until the step before the open one has closed where gradients are to go. */
static pserver_status wait_until_open(struct call *call, const struct update_source *blocks,
                                      size_t count) {
  struct client *client = call->client;
  struct steps *steps = &client->steps;
  while (true) {
    bool behind[PS_SHARDS_MAX] = {false};
    uint64_t most;
    uint64_t least;
    pserver_status status = enter(call);
    if (status != PSERVER_OK) return status;
    pthread_mutex_lock(&client->lock);
    bool is_behind = find_behind(client, blocks, count, behind);
    uint64_t step = steps->ended;
    uint64_t revision = steps->revision;
    bool is_open = steps->is_open;
    pthread_mutex_unlock(&client->lock);
    if (!is_behind) return PSERVER_OK;
    status = ps_ask_for_step(call, behind, revision, step, &most, &least);
    pthread_mutex_lock(&client->lock);
    bool has_place = ps_is_member(client);
    pthread_mutex_unlock(&client->lock);
    if (status == PSERVER_OK && !has_place) continue;
    if (status != PSERVER_OK || is_open || most <= step) return status;
    /* With backups, steps close without this trainer: what it could send for them comes too late. */
    status = ps_send_clocks(call, most);
    if (status != PSERVER_OK) return status;
    pthread_mutex_lock(&client->lock);
    steps->ended = most;
    pthread_mutex_unlock(&client->lock);
  }
}

/** The step that gradients belong to now. Lock held. */
static void take_place(const struct client *client, struct step_place *place) {
  bool is_sync = client->session.synchronization == TOGETHER_SYNC;
  place->step = is_sync ? client->steps.ended + 1 : 0;
  place->counts_late = (is_sync && client->session.backups > 0) || client->steps.entered_in_step;
}

pserver_status ps_reenter_steps(struct call *call, const struct update_source *blocks, size_t count,
                                struct step_place *place) {
  struct client *client = call->client;
  pthread_mutex_lock(&client->lock);
  client->steps.member = 0;
  memset(client->steps.closed, 0, sizeof client->steps.closed);
  pthread_mutex_unlock(&client->lock);
  pserver_status status = wait_until_open(call, blocks, count);
  if (status != PSERVER_OK) return status;
  pthread_mutex_lock(&client->lock);
  take_place(client, place);
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

pserver_status ps_join_step(struct call *call, const struct update_source *blocks, size_t count,
                            bool ends_step, struct step_place *place) {
  struct client *client = call->client;
  *place = (struct step_place){0};
  enum synchronization mode = mode_of(client);
  if (mode == TOGETHER_ASYNC) return PSERVER_OK;
  pserver_status status = take_turn(call);
  if (status != PSERVER_OK) return status;
  status = enter(call);
  if (status == PSERVER_OK && mode == TOGETHER_SYNC) status = wait_until_open(call, blocks, count);
  if (status == PSERVER_OK) {
    pthread_mutex_lock(&client->lock);
    place->is_in_steps = true;
    place->has_turn = ends_step;
    take_place(client, place);
    client->steps.is_open = true;
    client->steps.sending++;
    pthread_mutex_unlock(&client->lock);
  }
  if (!place->has_turn) release_turn(client);
  return after(client, status);
}

/** Ends the open step once its gradients are stored: a shard must have them before it is told that no
 * more will come. The turn is this call's. */
static pserver_status end_step(struct call *call) {
  struct client *client = call->client;
  pserver_status status;
  pthread_mutex_lock(&client->lock);
  while ((status = ps_call_check(call)) == PSERVER_OK && client->steps.sending > 0) {
    ps_call_wait(call, NEVER_MS);
  }
  uint64_t step = client->steps.ended + 1;
  pthread_mutex_unlock(&client->lock);
  if (status == PSERVER_OK) status = ps_send_clocks(call, step);
  if (status != PSERVER_OK) return status;
  pthread_mutex_lock(&client->lock);
  client->steps.ended = step;
  client->steps.is_open = false;
  client->steps.entered_in_step = false;
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

pserver_status ps_on_gradients_sent(struct call *call, const struct step_place *place, bool ends_step,
                                    pserver_status status, size_t late) {
  struct client *client = call->client;
  if (!place->is_in_steps) return status;
  pthread_mutex_lock(&client->lock);
  client->steps.sending--;
  /* Others are ahead: the next gradient looks for the step they are in. */
  for (unsigned shard = 0; shard < PS_SHARDS_MAX && late > 0; shard++) client->steps.closed[shard] = 0;
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
  if (status == PSERVER_OK && ends_step) status = end_step(call);
  if (place->has_turn) release_turn(client);
  return after(client, status);
}

pserver_status pserver_end_step(pserver_client *handle, int64_t timeout_ms) {
  struct call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_end_step", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  struct client *client = call.client;
  if (mode_of(client) == TOGETHER_ASYNC) return ps_call_end(&call, PSERVER_OK);
  status = take_turn(&call);
  if (status == PSERVER_OK) {
    status = enter(&call);
    if (status == PSERVER_OK) status = end_step(&call);
    release_turn(client);
  }
  return ps_call_end(&call, after(client, status));
}

pserver_status pserver_exit_steps(pserver_client *handle, int64_t timeout_ms) {
  struct call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_exit_steps", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  struct client *client = call.client;
  if (mode_of(client) == TOGETHER_ASYNC) return ps_call_end(&call, PSERVER_OK);
  status = take_turn(&call);
  if (status == PSERVER_OK) {
    pthread_mutex_lock(&client->lock);
    while ((status = ps_call_check(&call)) == PSERVER_OK && client->steps.sending > 0) {
      ps_call_wait(&call, NEVER_MS);
    }
    pthread_mutex_unlock(&client->lock);
    if (status == PSERVER_OK) status = ps_request_lifecycle(&call, "exit", NULL, NULL, NULL);
    if (status == PSERVER_OK) {
      pthread_mutex_lock(&client->lock);
      client->steps.member = 0;
      pthread_mutex_unlock(&client->lock);
    }
    release_turn(client);
  }
  return ps_call_end(&call, after(client, status));
}
