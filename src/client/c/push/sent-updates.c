/* Sends block updates of a call and waits for their fates. */
#include "push/sent-updates.h"

#include <stdlib.h>

#include "calls/client.h"

struct send_task {
  struct ps_task task;
  struct ps_sending sending;
  struct ps_update_sender *sender;
};

static void sending_over(struct ps_sending *sending, pserver_status status) {
  struct send_task *send = sending->context;
  ps_task_finish(&send->task, status);
}

static void begin_task(struct ps_task *task) {
  struct send_task *send = (struct send_task *)task;
  ps_sending_begin(send->sender, &send->sending);
}

static void end_task(struct ps_task *task, pserver_status why) {
  (void)why;
  struct send_task *send = (struct send_task *)task;
  ps_sending_end(&send->sending);
}

/** Sends block updates and waits. */
static pserver_status send_sources(struct ps_call *call, struct ps_call_updates *updates) {
  struct send_task send = {.task = {.begin = begin_task, .end = end_task},
                           .sending = {.updates = updates, .over = sending_over},
                           .sender = &call->client->sender};
  send.sending.context = &send;
  return ps_task_run(call, &send.task);
}

pserver_status ps_send_call(struct ps_call *call, struct ps_call_updates *updates) {
  if (updates->count == 0) return PSERVER_OK;
  return ps_forget_if_stale(call, updates, send_sources(call, updates));
}

pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_call_updates *updates,
                                  pserver_status status) {
  if (ps_reaction_to(status) != PS_REACTION_LOOK_UP) return status;
  /* The parameter was initialized anew since it was looked up: the next call must look it up again. */
  struct ps_error error = *ps_last_error();
  for (size_t i = 0; i < updates->count; i++) {
    struct ps_parameter *parameter = updates->sources[i].update->parameter;
    ps_forget_parameters(&call->client->parameters, &parameter, 1);
  }
  return ps_fail_with(&error);
}

pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone) {
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += updates[i].parameter->layout.blocks;
  struct ps_call_updates sent = {.count = total, .mode = mode, .goes_alone = goes_alone};
  sent.sources = calloc(total, sizeof(struct ps_update_source));
  if (sent.sources == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", total);
  struct ps_update_source *sources = sent.sources;
  for (size_t i = 0; i < count; i++) {
    ps_cut_into_blocks(&updates[i], sources);
    sources += updates[i].parameter->layout.blocks;
  }
  pserver_status status = ps_send_call(call, &sent);
  free(sent.sources);
  return status;
}
