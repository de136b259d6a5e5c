/* Sends the requests of a call and waits for the answers. */
#include "calls/request-task.h"

struct request_task {
  struct ps_task task;
  struct ps_ask_group group;
  struct ps_requests *requests;
};

static void group_over(struct ps_ask_group *group, pserver_status status) {
  struct request_task *request = group->context;
  ps_task_finish(&request->task, status);
}

static void note_progress(struct ps_ask_group *group) {
  struct request_task *request = group->context;
  ps_task_note_progress(&request->task);
}

static void run_progress(struct ps_task *task) {
  const struct request_task *request = (const struct request_task *)task;
  for (size_t i = 0; i < request->group.count; i++) {
    struct ps_ask *ask = &request->group.asks[i];
    if (ask->on_progress != NULL) ask->on_progress(ask);
  }
}

static void begin_task(struct ps_task *task) {
  struct request_task *request = (struct request_task *)task;
  ps_ask_group_begin(request->requests, &request->group);
}

static void end_task(struct ps_task *task, pserver_status why) {
  struct request_task *request = (struct request_task *)task;
  ps_ask_group_end(&request->group, why);
}

pserver_status ps_run_requests(struct ps_call *call, struct ps_requests *requests, struct ps_ask *asks,
                               size_t count) {
  struct request_task request = {.task = {.begin = begin_task, .end = end_task, .on_progress = run_progress},
                                 .group = {.asks = asks,
                                           .count = count,
                                           .ends_at_ms = call->ends_at_ms,
                                           .over = group_over,
                                           .on_progress = note_progress},
                                 .requests = requests};
  request.group.context = &request;
  return ps_task_run(call, &request.task);
}
