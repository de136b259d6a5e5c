/* Calls that wait for answers. */
#include "calls/request-task.h"

struct request_task {
  struct ps_task task;
  struct ps_asking asking;
  struct ps_requests *requests;
};

static void asking_over(struct ps_asking *asking, pserver_status status) {
  struct request_task *request = asking->context;
  ps_task_finish(&request->task, status);
}

static void tell_task(struct ps_asking *asking) {
  struct request_task *request = asking->context;
  ps_task_tell(&request->task);
}

static void run_news(struct ps_task *task) {
  const struct request_task *request = (const struct request_task *)task;
  for (size_t i = 0; i < request->asking.count; i++) {
    struct ps_ask *ask = &request->asking.asks[i];
    if (ask->news != NULL) ask->news(ask);
  }
}

static void begin_task(struct ps_task *task) {
  struct request_task *request = (struct request_task *)task;
  ps_asking_begin(request->requests, &request->asking);
}

static void end_task(struct ps_task *task, pserver_status why) {
  struct request_task *request = (struct request_task *)task;
  ps_asking_end(&request->asking, why);
}

pserver_status ps_run_requests(struct ps_call *call, struct ps_requests *requests, struct ps_ask *asks,
                               size_t count) {
  struct request_task request = {.task = {.begin = begin_task, .end = end_task, .news = run_news},
                                 .asking = {.asks = asks,
                                            .count = count,
                                            .ends_at_ms = call->ends_at_ms,
                                            .over = asking_over,
                                            .tell = tell_task},
                                 .requests = requests};
  request.asking.context = &request;
  return ps_task_run(call, &request.task);
}
