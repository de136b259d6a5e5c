#include "records/records.h"

#include <stdio.h>
#include <stdlib.h>

/* Calls that take part in the job's steps. */

/* Requests to shards for their last closed step. */

/** A request to one shard, on the I/O thread. */
struct step_request {
  struct ps_steps *steps;
  struct ps_step_call *call;
  unsigned shard;
  uint64_t revision;
  /** The answer: the last step that has closed. */
  uint64_t closed;
  struct ps_ask ask;
  struct ps_ask_group group;
};

static pserver_status write_request(struct ps_ask *ask, struct ps_draft *draft) {
  const struct step_request *request = ask->context;
  struct ps_position position = ps_positions_get(request->steps->deps.positions, request->shard);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "revision", request->revision);
  ps_draft_whole(draft, "step", ps_steps_core_wanted_step(&request->steps->core, request->call));
  ps_draft_whole(draft, "waitMs", ps_ask_group_wait_ms(&request->group));
  return ps_draft_end(draft);
}

static pserver_status read_answer(struct ps_ask *ask, const struct ps_message *message) {
  struct step_request *request = ask->context;
  const struct ps_value *fields = &message->fields;
  struct ps_position position;
  if (!ps_map_position(fields, &position) || !ps_map_whole(fields, "step", &request->closed)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "step: expected the last closed step; received another reply");
  }
  ps_positions_note(request->steps->deps.positions, request->shard, position);
  return PSERVER_OK;
}

static pserver_status refused(struct ps_ask *ask, pserver_status status,
                              const struct ps_message *message) {
  const struct step_request *request = ask->context;
  if (ps_reaction_to(status) != PS_REACTION_REPLACED || message == NULL) return status;
  ps_positions_note_replaced(request->steps->deps.positions, request->shard,
                             ps_expected_position(message).generation);
  return PSERVER_OK;
}

static void on_over(struct ps_ask_group *group, pserver_status status) {
  const struct step_request *request = group->context;
  struct ps_steps_core *core = &request->steps->core;
  if (status == PSERVER_OK) {
    ps_steps_core_step_answered(core, request->call, request->shard, request->closed);
    return;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_steps_core_ask_failed(core, request->call, failure);
  ps_failure_drop(failure);
}

/**
 * Asks a shard for its last closed step, to be answered once it knows this revision of the members and has
 * closed the step that the call waits for. Raises `step_answered` or `ask_failed`. The owner ends the
 * request by ps_ask_group_end(), at `ends_at_ms` at the latest.
 */
static void ask_for_step(struct ps_steps *steps, struct step_request *request, struct ps_step_call *call,
                         unsigned shard, uint64_t revision, int64_t ends_at_ms) {
  *request = (struct step_request){
      .steps = steps,
      .call = call,
      .shard = shard,
      .revision = revision,
      .ask = {.write = write_request, .read = read_answer, .refused = refused, .context = request},
      .group = {.asks = &request->ask,
                .count = 1,
                .ends_at_ms = ends_at_ms,
                .over = on_over,
                .context = request},
  };
  ps_ask_shard(&request->ask, steps->deps.lifecycle->identity, shard, "step");
  ps_ask_group_begin(steps->deps.lifecycle->requests, &request->group);
}

/* Calls that take part in steps: carries out the commands of the step machine. */

/** A call under way, for which one thing at a time is under way: a lifecycle request, step requests, or a
 * sending. */
struct ps_step_task {
  struct ps_task task;
  struct ps_steps *steps;
  /** Empty for a call without gradients. */
  struct ps_sending *gradients;
  struct ps_step_call *call;
  struct ps_lifecycle_request request;
  uint64_t revision;
  /** Carried by the request to enter or exit. */
  uint64_t exits;
  /** By shard; NULL until the first is made. */
  struct step_request *step_requests;
  struct ps_parameter_update clock;
  struct ps_sending clocks;
  /** The sending under way: `gradients` or `clocks`. */
  struct ps_sending *sending;
};

static void fail(struct ps_step_task *step) {
  struct ps_failure *failure = ps_failure_of_last();
  ps_steps_core_failed(&step->steps->core, step->call, failure);
  ps_failure_drop(failure);
}

/* Membership. */

/** Writes how often the trainer has exited, into a request to enter or exit. */
static void write_exits(void *context, struct ps_draft *draft) {
  const struct ps_step_task *step = context;
  ps_draft_whole(draft, "exits", step->exits);
}

static pserver_status read_enter(void *context, const struct ps_message *message) {
  struct ps_step_task *step = context;
  if (ps_map_whole(&message->fields, "revision", &step->revision)) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_BAD_MESSAGE, "enter: expected a revision; received another reply");
}

static void entered(struct ps_lifecycle_request *request, pserver_status status) {
  struct ps_step_task *step = request->owner;
  if (status != PSERVER_OK) fail(step);
  else ps_steps_core_entered(&step->steps->core, step->call, step->revision);
}

static void exited(struct ps_lifecycle_request *request, pserver_status status) {
  struct ps_step_task *step = request->owner;
  if (status != PSERVER_OK) fail(step);
  else ps_steps_core_exited(&step->steps->core, step->call);
}

/** Asks the hosts to make the trainer a member, or to end that. */
static void ask_hosts(struct ps_step_task *step, const char *verb, ps_read_reply read,
                      void (*over)(struct ps_lifecycle_request *request, pserver_status status)) {
  step->exits = step->steps->exits;
  step->request = (struct ps_lifecycle_request){.verb = verb,
                                                .write = write_exits,
                                                .read = read,
                                                .context = step,
                                                .has_session = true,
                                                .is_asked_again = true,
                                                .ends_at_ms = step->task.call->ends_at_ms,
                                                .over = over,
                                                .owner = step};
  ps_lifecycle_begin(step->steps->deps.lifecycle, &step->request);
}

static void enter(void *owner, struct ps_step_call *call) {
  (void)owner;
  ask_hosts(call->context, "enter", read_enter, entered);
}

static void exit_members(void *owner, struct ps_step_call *call) {
  ((struct ps_steps *)owner)->exits += 1;
  ask_hosts(call->context, "exit", NULL, exited);
}

/* Closed steps. */

static void ask_step(void *owner, struct ps_step_call *call, unsigned shard, uint64_t revision) {
  struct ps_steps *steps = owner;
  struct ps_step_task *step = call->context;
  if (step->step_requests == NULL)
    step->step_requests = calloc(PS_SHARDS_MAX, sizeof *step->step_requests);
  if (step->step_requests == NULL) {
    ps_no_memory("requests");
    struct ps_failure *failure = ps_failure_of_last();
    ps_steps_core_ask_failed(&steps->core, call, failure);
    ps_failure_drop(failure);
    return;
  }
  ask_for_step(steps, &step->step_requests[shard], call, shard, revision, step->task.call->ends_at_ms);
}

/* Gradients and clocks. */

static void gradients_over(struct ps_sending *sending, pserver_status status) {
  struct ps_step_task *step = sending->context;
  struct ps_steps_core *core = &step->steps->core;
  if (status == PSERVER_OK) {
    ps_steps_core_gradients_sent(core, step->call, sending->late);
    return;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_steps_core_gradients_failed(core, step->call, failure, sending->taken);
  ps_failure_drop(failure);
}

/** Sends sources whose `over` will be called with the task as context. */
static void begin_sending(struct ps_step_task *step, struct ps_sending *sending) {
  step->sending = sending;
  sending->context = step;
  ps_sending_begin(step->steps->deps.sender, sending);
}

static void send_gradients(void *owner, struct ps_step_call *call, uint64_t number, bool counts_late) {
  (void)owner;
  struct ps_step_task *step = call->context;
  struct ps_sending *gradients = step->gradients;
  for (size_t i = 0; i < gradients->count; i++) gradients->sources[i].step = number;
  gradients->mode.counts_late = counts_late;
  gradients->over = gradients_over;
  begin_sending(step, gradients);
}

static void clocks_over(struct ps_sending *sending, pserver_status status) {
  struct ps_step_task *step = sending->context;
  free(step->clocks.sources);
  step->clocks.sources = NULL;
  if (status != PSERVER_OK) fail(step);
  else ps_steps_core_clocks_sent(&step->steps->core, step->call);
}

/** Sends a clock to every shard: this trainer has ended all steps up to this one. */
static void send_clocks(void *owner, struct ps_step_call *call, uint64_t number) {
  const struct ps_steps *steps = owner;
  struct ps_step_task *step = call->context;
  unsigned shards = steps->core.shards;
  step->clock = (struct ps_parameter_update){.operation = PS_UPDATE_CLOCK};
  step->clocks =
      (struct ps_sending){.sources = calloc(shards, sizeof(struct ps_block_source)), .over = clocks_over};
  if (step->clocks.sources == NULL) {
    ps_no_memory("clocks");
    fail(step);
    return;
  }
  step->clocks.count = shards;
  for (unsigned shard = 0; shard < shards; shard++) {
    step->clocks.sources[shard].update = &step->clock;
    step->clocks.sources[shard].shard = shard;
    step->clocks.sources[shard].step = number;
  }
  begin_sending(step, &step->clocks);
}

/* Beginning and end of calls. */

static void finish(struct ps_step_task *step, pserver_status status) {
  if (step->steps->ending == step) step->steps->ending = NULL;
  ps_task_finish(&step->task, status);
}

static void step_call_done(void *owner, struct ps_step_call *call) {
  (void)owner;
  finish(call->context, PSERVER_OK);
}

static void step_call_failed(void *owner, struct ps_step_call *call, struct ps_failure *failure) {
  (void)owner;
  finish(call->context, ps_fail_as_core(failure));
}

void ps_steps_init(struct ps_steps *steps, const struct ps_steps_deps *deps) {
  *steps = (struct ps_steps){
      .deps = *deps,
      .core = {.commands = &steps->commands},
      .commands = {.owner = steps,
                   .enter = enter,
                   .exit_members = exit_members,
                   .ask_step = ask_step,
                   .send_gradients = send_gradients,
                   .send_clocks = send_clocks,
                   .step_call_done = step_call_done,
                   .step_call_failed = step_call_failed},
  };
}

static void begin_task(struct ps_task *task) {
  struct ps_step_task *step = (struct ps_step_task *)task;
  ps_steps_core_begin(&step->steps->core, step->call);
}

/** Ends what is under way for a call. Either the call then fails, or the step machine begins something
 * else. */
static void end_under_way(struct ps_steps *steps, struct ps_step_task *step, pserver_status why) {
  switch (step->call->phase) {
    case PS_STEP_ENTERING:
    case PS_STEP_EXITING:
      ps_lifecycle_end(&step->request, why);
      return;
    case PS_STEP_ARRIVING:
    case PS_STEP_OPENING:
      for (unsigned shard = 0; shard < PS_SHARDS_MAX && steps->ending == step; shard++) {
        if (step->step_requests != NULL) ps_ask_group_end(&step->step_requests[shard].group, why);
      }
      return;
    case PS_STEP_QUEUED:
    case PS_STEP_DRAINING: {
      struct ps_failure *failure = ps_failure_of_last();
      ps_steps_core_end_call(&steps->core, step->call, failure);
      ps_failure_drop(failure);
      return;
    }
    default:
      ps_sending_end(step->sending);
  }
}

static void end_task(struct ps_task *task, pserver_status why) {
  struct ps_step_task *step = (struct ps_step_task *)task;
  struct ps_error end = *ps_last_error();
  struct ps_steps *steps = step->steps;
  steps->ending = step;
  while (steps->ending == step) {
    ps_fail_with(&end);
    end_under_way(steps, step, why);
  }
}

static pserver_status run(struct ps_call *call, struct ps_steps *steps, enum ps_step_call_kind kind,
                          struct ps_sending *gradients, bool ends_step) {
  unsigned shards[PS_SHARDS_MAX];
  bool is_listed[PS_SHARDS_MAX] = {false};
  size_t count = 0;
  for (size_t i = 0; i < gradients->count; i++) {
    unsigned shard = gradients->sources[i].shard;
    if (!is_listed[shard]) shards[count++] = shard;
    is_listed[shard] = true;
  }
  struct ps_step_task step = {
      .task = {.begin = begin_task, .end = end_task}, .steps = steps, .gradients = gradients};
  step.call = ps_step_call_new(0, kind, shards, count, ends_step);
  if (step.call == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "%s: no memory for a call", call->what);
  step.call->context = &step;
  pserver_status status = ps_task_run(call, &step.task);
  ps_step_call_destroy(step.call);
  free(step.step_requests);
  return status;
}

pserver_status ps_send_in_step(struct ps_call *call, struct ps_steps *steps, struct ps_sending *gradients,
                               bool ends_step) {
  return run(call, steps, PS_STEP_CALL_GRADIENTS, gradients, ends_step);
}

pserver_status ps_run_step_call(struct ps_call *call, struct ps_steps *steps,
                                enum ps_step_call_kind kind) {
  struct ps_sending no_gradients = {0};
  return run(call, steps, kind, &no_gradients, true);
}
