/* Calls that take part in steps: each does on its own thread what the step machine commands for it. */
#include "push/steps.h"

#include <string.h>

#include "calls/client.h"
#include "calls/lifecycle-request.h"
#include "push/call-error.h"
#include "push/parameter-update.h"
#include "push/step-requests.h"
#include "wire/clock.h"

/** What the step machine has commanded for a call. */
enum step_command {
  COMMAND_NONE,
  COMMAND_ENTER,
  COMMAND_EXIT,
  COMMAND_ASK,
  COMMAND_SEND_GRADIENTS,
  COMMAND_SEND_CLOCKS,
};

/** A call under way. */
struct pending_step_call {
  struct call *call;
  /** Empty for a call that sends none. */
  struct call_updates *gradients;
  enum step_command command;
  /** With a command: the step of gradients or clocks, and whether late gradients are counted. */
  uint64_t step;
  bool counts_late;
  /** With COMMAND_ASK: the shards to be asked, and the revision of the members they are to know. */
  bool shards[PS_SHARDS_MAX];
  uint64_t revision;
  bool is_over;
  /** Why the call has failed; NULL if it has not. */
  struct ps_failure *failure;
};

/** Has the thread of a call do something. */
static struct pending_step_call *note(struct ps_step_call *call, enum step_command command) {
  struct pending_step_call *pending = call->context;
  pending->command = command;
  ps_call_wake(pending->call);
  return pending;
}

static void note_enter(void *shell, struct ps_step_call *call) {
  (void)shell;
  note(call, COMMAND_ENTER);
}

static void note_exit(void *shell, struct ps_step_call *call) {
  (void)shell;
  note(call, COMMAND_EXIT);
}

static void note_ask(void *shell, struct ps_step_call *call, unsigned shard, uint64_t revision) {
  (void)shell;
  struct pending_step_call *pending = note(call, COMMAND_ASK);
  pending->shards[shard] = true;
  pending->revision = revision;
}

static void note_gradients(void *shell, struct ps_step_call *call, uint64_t step, bool counts_late) {
  (void)shell;
  struct pending_step_call *pending = note(call, COMMAND_SEND_GRADIENTS);
  pending->step = step;
  pending->counts_late = counts_late;
}

static void note_clocks(void *shell, struct ps_step_call *call, uint64_t step) {
  (void)shell;
  note(call, COMMAND_SEND_CLOCKS)->step = step;
}

static void note_done(void *shell, struct ps_step_call *call) {
  (void)shell;
  note(call, COMMAND_NONE)->is_over = true;
}

static void note_failed(void *shell, struct ps_step_call *call, struct ps_failure *failure) {
  (void)shell;
  struct pending_step_call *pending = note(call, COMMAND_NONE);
  pending->is_over = true;
  pending->failure = ps_failure_keep(failure);
}

void ps_steps_init(struct client *client) {
  struct steps *steps = &client->steps;
  steps->commands = (struct ps_steps_commands){.shell = client,
                                               .enter = note_enter,
                                               .exit_members = note_exit,
                                               .ask_step = note_ask,
                                               .send_gradients = note_gradients,
                                               .send_clocks = note_clocks,
                                               .step_call_done = note_done,
                                               .step_call_failed = note_failed};
  steps->core.commands = &steps->commands;
}

static pserver_status read_enter(struct call *call, void *context, const struct message *message) {
  (void)call;
  if (ps_map_whole(&message->fields, "revision", context)) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_BAD_MESSAGE, "enter: expected a revision; received another reply");
}

/** Sends gradients in the step that was commanded. */
static pserver_status send_gradients(const struct pending_step_call *commanded) {
  struct call_updates *gradients = commanded->gradients;
  for (size_t i = 0; i < gradients->count; i++) gradients->sources[i].step = commanded->step;
  gradients->mode.counts_late = commanded->counts_late;
  return ps_send_call(commanded->call, gradients);
}

/** Does what was commanded; `revision` gets that of the members entered. */
static pserver_status perform(struct pending_step_call *commanded, struct ps_step_call *step_call,
                              uint64_t *revision) {
  struct call *call = commanded->call;
  switch (commanded->command) {
    case COMMAND_ENTER:
      return ps_request_lifecycle(call, "enter", NULL, read_enter, revision);
    case COMMAND_EXIT:
      return ps_request_lifecycle(call, "exit", NULL, NULL, NULL);
    case COMMAND_SEND_GRADIENTS:
      return send_gradients(commanded);
    case COMMAND_SEND_CLOCKS:
      return ps_send_clocks(call, commanded->step);
    default:
      ps_ask_for_step(call, step_call, commanded->shards, commanded->revision);
      return PSERVER_OK;
  }
}

/** Does what was commanded for a call, and raises what came of it. Lock held, released meanwhile. */
static void run_command(struct client *client, struct ps_step_call *call) {
  struct ps_steps_core *core = &client->steps.core;
  struct pending_step_call *pending = call->context;
  struct pending_step_call commanded = *pending;
  uint64_t revision = 0;
  pending->command = COMMAND_NONE;
  memset(pending->shards, 0, sizeof pending->shards);
  pthread_mutex_unlock(&client->lock);
  pserver_status status = perform(&commanded, call, &revision);
  struct ps_failure *failure = status == PSERVER_OK ? NULL : ps_failure_of_last();
  pthread_mutex_lock(&client->lock);
  if (failure != NULL) ps_steps_core_failed(core, call, failure);
  else if (commanded.command == COMMAND_ENTER) ps_steps_core_entered(core, call, revision);
  else if (commanded.command == COMMAND_EXIT) ps_steps_core_exited(core, call);
  else if (commanded.command == COMMAND_SEND_GRADIENTS)
    ps_steps_core_gradients_sent(core, call, pending->gradients->late);
  else if (commanded.command == COMMAND_SEND_CLOCKS) ps_steps_core_clocks_sent(core, call);
  ps_failure_drop(failure);
}

/** Tells the machine that the time of a call is over, or its caller has aborted it. Lock held. */
static void end_call(struct client *client, struct ps_step_call *call) {
  struct ps_failure *failure = ps_failure_of_last();
  ps_steps_core_end_call(&client->steps.core, call, failure);
  ps_failure_drop(failure);
}

/** Runs a call until the machine says that it is over. */
static void run_until_over(struct client *client, struct ps_step_call *call) {
  struct pending_step_call *pending = call->context;
  pthread_mutex_lock(&client->lock);
  ps_steps_core_begin(&client->steps.core, call);
  while (!pending->is_over) {
    if (pending->command != COMMAND_NONE) run_command(client, call);
    else if (ps_call_check(pending->call) != PSERVER_OK) end_call(client, call);
    else ps_call_wait(pending->call, NEVER_MS);
  }
  pthread_mutex_unlock(&client->lock);
}

static pserver_status run_call(struct call *call, enum ps_step_call_kind kind,
                               struct call_updates *gradients, bool ends_step) {
  unsigned shards[PS_SHARDS_MAX];
  bool is_listed[PS_SHARDS_MAX] = {false};
  size_t count = 0;
  for (size_t i = 0; i < gradients->count; i++) {
    unsigned shard = gradients->sources[i].shard;
    if (!is_listed[shard]) shards[count++] = shard;
    is_listed[shard] = true;
  }
  struct pending_step_call pending = {.call = call, .gradients = gradients};
  struct ps_step_call *step_call = ps_step_call_new(0, kind, shards, count, ends_step);
  if (step_call == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "%s: no memory for a call", call->what);
  step_call->context = &pending;
  run_until_over(call->client, step_call);
  ps_step_call_destroy(step_call);
  if (pending.failure == NULL) return PSERVER_OK;
  pserver_status status = ps_fail_as_core(pending.failure);
  ps_failure_drop(pending.failure);
  return status;
}

pserver_status ps_send_in_step(struct call *call, struct call_updates *gradients, bool ends_step) {
  return run_call(call, PS_STEP_CALL_GRADIENTS, gradients, ends_step);
}

static pserver_status run_alone(const char *what, pserver_client *handle, int64_t timeout_ms,
                                enum ps_step_call_kind kind) {
  struct call call;
  struct call_updates no_gradients = {0};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  return ps_call_end(&call, run_call(&call, kind, &no_gradients, true));
}

pserver_status pserver_end_step(pserver_client *handle, int64_t timeout_ms) {
  return run_alone("pserver_end_step", handle, timeout_ms, PS_STEP_CALL_END);
}

pserver_status pserver_exit_steps(pserver_client *handle, int64_t timeout_ms) {
  return run_alone("pserver_exit_steps", handle, timeout_ms, PS_STEP_CALL_EXIT);
}
