#include "push/push.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Calls that contribute to rounds of fragments. */

/* Membership: rounds wait for the trainers that have entered. */

struct membership {
  /** The session at the time, and how often the trainer had exited. */
  uint64_t session;
  uint64_t exits;
  bool is_member;
};

static void look(struct ps_client *client, void *context) {
  struct membership *membership = context;
  membership->session = client->session.core.session;
  membership->exits = client->rounds.exits;
  membership->is_member = client->rounds.member_session == membership->session;
}

/** Notes that the trainer is a member, unless it has exited since. */
static void note_entered(struct ps_client *client, void *context) {
  const struct membership *membership = context;
  if (client->rounds.exits == membership->exits) client->rounds.member_session = membership->session;
}

static void note_out(struct ps_client *client, void *context) {
  (void)context;
  client->rounds.member_session = 0;
}

static void begin_exit(struct ps_client *client, void *context) {
  client->rounds.exits++;
  client->rounds.member_session = 0;
  look(client, context);
}

static void write_exits(void *context, struct ps_draft *draft) {
  const struct membership *membership = context;
  ps_draft_whole(draft, "exits", membership->exits);
}

static pserver_status ask_hosts(struct ps_call *call, const char *verb, struct membership *membership) {
  const struct ps_lifecycle *lifecycle = &call->client->session.lifecycle;
  return ps_request_lifecycle(call, lifecycle, verb, write_exits, NULL, membership);
}

/** Has hosts make the trainer a member, unless it is one in this session. */
static pserver_status enter(struct ps_call *call) {
  struct membership membership;
  ps_run_on_io_thread(call, look, &membership);
  if (membership.is_member) return PSERVER_OK;
  pserver_status status = ask_hosts(call, "enter", &membership);
  if (status == PSERVER_OK) ps_run_on_io_thread(call, note_entered, &membership);
  return status;
}

pserver_status ps_exit_rounds(struct ps_call *call) {
  struct membership membership;
  ps_run_on_io_thread(call, begin_exit, &membership);
  return ask_hosts(call, "exit", &membership);
}

pserver_status pserver_enter_rounds(pserver_client *handle, int64_t timeout_ms) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_enter_rounds", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_require_rounds(&call);
  if (status == PSERVER_OK) status = enter(&call);
  return ps_call_end(&call, status);
}

/* Turns: a host keeps the parts of one contribution of a trainer in each shard, so one is sent after the other. */

struct turn {
  struct ps_task task;
  unsigned shard;
  struct ps_queue_link place;
};

static void begin_turn(struct ps_task *task) {
  struct turn *turn = (struct turn *)task;
  struct ps_rounds *rounds = &task->call->client->rounds;
  if (rounds->is_taken[turn->shard]) {
    ps_queue_append(&rounds->waiting[turn->shard], &turn->place, turn);
    return;
  }
  rounds->is_taken[turn->shard] = true;
  ps_task_finish(task, PSERVER_OK);
}

static void end_turn(struct ps_task *task, pserver_status why) {
  struct turn *turn = (struct turn *)task;
  ps_queue_remove(&task->call->client->rounds.waiting[turn->shard], &turn->place);
  ps_task_finish(task, why);
}

/** Waits until no other contribution to the shard is being sent. To be passed on unless it fails. */
static pserver_status take_turn(struct ps_call *call, unsigned shard) {
  struct turn turn = {.task = {.begin = begin_turn, .end = end_turn}, .shard = shard};
  return ps_task_run(call, &turn.task);
}

static void pass_on(struct ps_client *client, void *context) {
  unsigned shard = *(const unsigned *)context;
  struct turn *next = ps_queue_take(&client->rounds.waiting[shard]);
  client->rounds.is_taken[shard] = next != NULL;
  if (next != NULL) ps_task_finish(&next->task, PSERVER_OK);
}

/* Contributions. */

static void number(struct ps_client *client, void *context) {
  ((struct ps_contribution *)context)->id = ++client->rounds.contributions;
}

/**
 * Sends a contribution until all of its parts have been taken in one session, in which the trainer is a member; `*round`
 * is 0 if it came too late.
 */
static pserver_status send_until_taken(struct ps_call *call, struct ps_block_source *sources, size_t count,
                                       struct ps_contribution *contribution, uint64_t *round) {
  while (true) {
    struct ps_sending sending = {
        .sources = sources, .count = count, .mode = {.counts_late = true}, .contribution = contribution};
    pserver_status status = enter(call);
    if (status != PSERVER_OK) return status;
    ps_run_on_io_thread(call, number, contribution);
    status = ps_send(call, &sending);
    if (ps_reaction_to(status) == PS_REACTION_ENTER_ANEW) {
      ps_run_on_io_thread(call, note_out, NULL);
      continue;
    }
    if (status != PSERVER_OK) return status;
    bool is_late = sending.late > 0;
    if (!is_late && sending.version == 0) continue;
    *round = is_late ? 0 : sending.version;
    return PSERVER_OK;
  }
}

/** Sends the updates of a contribution in its turn. */
static pserver_status send_in_turn(struct ps_call *call, struct ps_block_source *sources, size_t count,
                                   struct ps_contribution *contribution, uint64_t *round) {
  unsigned shard = sources[0].shard;
  pserver_status status = take_turn(call, shard);
  if (status != PSERVER_OK) return status;
  status = send_until_taken(call, sources, count, contribution, round);
  struct ps_error error = *ps_last_error();
  ps_run_on_io_thread(call, pass_on, &shard);
  return status == PSERVER_OK ? PSERVER_OK : ps_fail_with(&error);
}

/** The tensors of a contribution, and memory for what is made of them. */
struct tensors {
  const char *const *names;
  const pserver_tensor *values;
  size_t count;
  struct ps_parameter **found;
  struct ps_parameter_update *updates;
  struct ps_block_source *sources;
  /** Used if they are encoded in groups. */
  struct ps_grouped_gradient *grouped;
  uint8_t *encoded;
};

static pserver_status prepare(struct ps_parameter_update *update, const pserver_tensor *value,
                              const pserver_contribution *given) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_fragment(parameter, given->fragment);
  if (status == PSERVER_OK) status = ps_check_encoding(parameter, update->encoding);
  if (status == PSERVER_OK) {
    status = ps_fit_tensor(parameter, value, parameter->shape, parameter->rank, parameter->layout.elements);
  }
  if (status != PSERVER_OK) return status;
  update->data = value->data;
  return ps_finish_update(update, parameter->layout.elements);
}

/** Makes the updates of all tensors. BAD_VALUE for a parameter that is named twice. */
static pserver_status prepare_all(struct ps_call *call, struct tensors *tensors, const pserver_contribution *given) {
  size_t count = tensors->count;
  struct ps_parameter_set set;
  bool has_memory = ps_parameter_set_init(&set, count);
  tensors->found = calloc(count, sizeof(struct ps_parameter *));
  tensors->updates = calloc(count, sizeof *tensors->updates);
  tensors->grouped = calloc(count, sizeof *tensors->grouped);
  has_memory = has_memory && tensors->found != NULL && tensors->updates != NULL && tensors->grouped != NULL;
  pserver_status status = has_memory ? ps_find_parameters(call, tensors->names, count, false, tensors->found)
                                     : ps_no_memory("%zu tensors", count);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    struct ps_parameter *parameter = tensors->found[i];
    bool is_exact = given->exact != NULL && given->exact[i];
    tensors->updates[i] = (struct ps_parameter_update){.operation = PS_UPDATE_GRADIENT,
                                                       .parameter = parameter,
                                                       .encoding = is_exact ? PSERVER_AS_IS : given->encoding};
    if (!ps_parameter_set_add(&set, parameter)) {
      ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected each parameter once; received it twice", parameter->name);
      status = ps_detail_text("parameter", parameter->name);
    }
    if (status == PSERVER_OK) status = prepare(&tensors->updates[i], &tensors->values[i], given);
  }
  ps_parameter_set_release(&set);
  return status;
}

/** Cuts the updates into blocks; returns their number, 0 if there is no memory. */
static size_t cut(struct tensors *tensors, const pserver_contribution *given) {
  size_t blocks = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < tensors->count; i++) blocks += (size_t)tensors->updates[i].parameter->layout.blocks;
  tensors->sources = malloc(blocks * sizeof *tensors->sources);
  if (tensors->sources == NULL) return 0;
  struct ps_block_source *next = tensors->sources;
  for (size_t i = 0; i < tensors->count; i++) {
    struct ps_parameter_update *update = &tensors->updates[i];
    size_t count = (size_t)update->parameter->layout.blocks;
    ps_cut_into_blocks(update, next);
    tensors->grouped[i] = (struct ps_grouped_gradient){
        .update = update, .sources = next, .count = count, .feeds_back = !given->no_error_feedback};
    for (size_t block = 0; block < count; block++) bytes += ps_source_bytes(&next[block]);
    next += count;
  }
  if (!ps_is_grouped(given->encoding)) return blocks;
  tensors->encoded = malloc(bytes);
  if (tensors->encoded == NULL) return 0;
  uint8_t *encoded = tensors->encoded;
  for (size_t i = 0; i < tensors->count; i++) {
    if (ps_is_grouped(tensors->updates[i].encoding)) ps_group_gradient(&tensors->grouped[i], &encoded);
  }
  return blocks;
}

static pserver_status contribute(struct ps_call *call, struct tensors *tensors, const pserver_contribution *given,
                                 uint64_t *round) {
  struct ps_contribution contribution = {.fragment = given->fragment,
                                         .base = given->base,
                                         .steps = given->steps,
                                         .tokens = given->tokens,
                                         .step_ms = given->step_ms,
                                         .form = given->form};
  pserver_status status = prepare_all(call, tensors, given);
  if (status == PSERVER_OK) {
    size_t blocks = cut(tensors, given);
    status = blocks == 0 ? ps_no_memory("%zu tensors", tensors->count)
                         : send_in_turn(call, tensors->sources, blocks, &contribution, round);
  }
  if (tensors->found != NULL) ps_parameters_unref(tensors->found, tensors->count);
  free(tensors->found);
  free(tensors->updates);
  free(tensors->grouped);
  free(tensors->sources);
  free(tensors->encoded);
  return status;
}

void pserver_contribution_init(pserver_contribution *contribution) {
  if (contribution == NULL) return;
  *contribution = (pserver_contribution){.struct_size = sizeof *contribution, .step_ms = -1};
}

static pserver_status check_count(const char *what, uint64_t count) {
  if (count <= PS_CONTRIBUTION_COUNT_MAX) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected at most 2^40; received %" PRIu64, what, count);
  ps_detail_text("expected", "at most 2^40");
  return ps_detail_whole("received", count);
}

static pserver_status check_contribution(const struct ps_call *call, const pserver_contribution *given) {
  if (given == NULL) return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected a contribution; received NULL", call->what);
  pserver_status status = ps_check_options(call->what, sizeof *given, given->struct_size,
                                           "pserver_contribution_init", given->encoding);
  if (status != PSERVER_OK) return status;
  if (given->fragment == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: fragment: expected a name; received NULL", call->what);
  }
  if (given->form != PSERVER_DISPLACEMENT && given->form != PSERVER_PARAMETERS) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: form: expected a displacement or parameters; received %d", call->what,
                   (int)given->form);
  }
  if (!isfinite(given->step_ms)) {
    ps_fail(PSERVER_ERR_BAD_VALUE, "step_ms: expected a finite number; received %g", given->step_ms);
    ps_detail_text("expected", "a finite number");
    return ps_detail_number("received", given->step_ms);
  }
  status = check_count("steps", given->steps);
  return status == PSERVER_OK ? check_count("tokens", given->tokens) : status;
}

pserver_status pserver_contribute(pserver_client *handle, const char *const *names, const pserver_tensor *values,
                                  size_t count, const pserver_contribution *contribution, int64_t timeout_ms,
                                  uint64_t *round) {
  struct ps_call call;
  struct tensors tensors = {.names = names, .values = values, .count = count};
  pserver_status status = ps_call_begin(&call, handle, "pserver_contribute", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_contribution(&call, contribution);
  if (status == PSERVER_OK && count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "pserver_contribute: expected at least one tensor; received none");
  } else if (status == PSERVER_OK && (names == NULL || values == NULL || round == NULL)) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_contribute: expected names, tensors and a round; received NULL");
  }
  if (status == PSERVER_OK) status = ps_require_rounds(&call);
  if (status == PSERVER_OK) status = contribute(&call, &tensors, contribution, round);
  return ps_call_end(&call, status);
}

pserver_status pserver_sampling(pserver_client *handle, const char *fragment, const char *parameter,
                                uint64_t min_version, int64_t timeout_ms, uint64_t *round, bool *is_sampled) {
  struct ps_call call;
  uint64_t version = 0;
  pserver_status status = ps_call_begin(&call, handle, "pserver_sampling", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  if (fragment == NULL || parameter == NULL || round == NULL || is_sampled == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE,
                     "pserver_sampling: expected a fragment, a parameter and pointers; received NULL");
  }
  if (status == PSERVER_OK) status = ps_require_rounds(&call);
  /* Samples are drawn of the members. */
  if (status == PSERVER_OK) status = enter(&call);
  if (status == PSERVER_OK) status = ps_ask_sampling(&call, fragment, parameter, min_version, &version, is_sampled);
  if (status == PSERVER_OK) *round = version + 1;
  return ps_call_end(&call, status);
}
