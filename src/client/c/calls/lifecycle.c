#include "calls/calls.h"

#include <stdio.h>
#include <string.h>

/* Lifecycle requests, each sent under the session that is current at the time. */

static pserver_status write_request(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_lifecycle_request *request = ask->context;
  if (request->has_session) {
    ps_draft_whole(draft, "session", request->lifecycle->core->session);
  }
  const char *made = request->lifecycle->made;
  if (made[0] != '\0') ps_draft_text(draft, "made", made);
  if (request->write != NULL) request->write(request->context, draft);
  return ps_draft_end(draft);
}

static pserver_status read_request(struct ps_ask *ask, const struct ps_message *message) {
  const struct ps_lifecycle_request *request = ask->context;
  return request->read == NULL ? PSERVER_OK : request->read(request->context, message);
}

static pserver_status note_received(struct ps_ask *ask, pserver_status status,
                                    const struct ps_message *message) {
  struct ps_lifecycle_request *request = ask->context;
  request->received = message == NULL ? 0 : ps_received_session(message);
  return status;
}

static pserver_status no_host(struct ps_ask *ask) {
  const struct ps_lifecycle_request *request = ask->context;
  const char *job = request->lifecycle->identity->job;
  ps_fail(PSERVER_ERR_NO_HOST,
          "no host of job \"%s\" answers: start one on this broker, or check the name of the job "
          "and the broker's address",
          job);
  return ps_detail_text("job", job);
}

struct ps_failure *ps_lifecycle_failure(const struct ps_lifecycle_request *request) {
  struct ps_failure *failure = ps_failure_of_last();
  if (failure->references > 0) failure->received = request->received;
  return failure;
}

/** Turns the timeout of a request into NO_HOST. */
static pserver_status explain(struct ps_lifecycle_request *request, pserver_status status) {
  if (status != PSERVER_ERR_TIMEOUT || ps_ask_group_remaining_ms(&request->group) > 0) return status;
  char text[PS_ERROR_TEXT_BYTES / 2];
  snprintf(text, sizeof text, "%.500s", ps_last_error()->text);
  status = no_host(&request->ask);
  ps_fail_prefixed("%s; ", text);
  return status;
}

static void on_over(struct ps_ask_group *group, pserver_status status) {
  struct ps_lifecycle_request *request = group->context;
  status = explain(request, status);
  if (status == PSERVER_OK || !request->is_asked_again) {
    request->over(request, status);
    return;
  }
  struct ps_failure *failure = ps_lifecycle_failure(request);
  ps_session_core_request_failed(request->lifecycle->core, &request->core, failure);
  ps_failure_drop(failure);
}

static void ask_now(struct ps_lifecycle_request *request) {
  const struct ps_identity *identity = request->lifecycle->identity;
  request->ask = (struct ps_ask){.write = write_request,
                                 .read = read_request,
                                 .nobody = no_host,
                                 .refused = note_received,
                                 .context = request};
  request->group = (struct ps_ask_group){.asks = &request->ask,
                                         .count = 1,
                                         .ends_at_ms = request->ends_at_ms,
                                         .over = on_over,
                                         .context = request};
  snprintf(request->ask.subject, sizeof request->ask.subject, "ps.%s.lifecycle.%s.%s", identity->job,
           identity->id, request->verb);
  ps_ask_group_begin(request->lifecycle->requests, &request->group);
}

void ps_lifecycle_begin(const struct ps_lifecycle *lifecycle, struct ps_lifecycle_request *request) {
  request->lifecycle = lifecycle;
  request->core = (struct ps_session_request){.context = request};
  request->received = 0;
  ask_now(request);
}

void ps_lifecycle_end(struct ps_lifecycle_request *request, pserver_status status) {
  if (!ps_is_queued(&request->core.place)) {
    ps_ask_group_end(&request->group, status);
    return;
  }
  ps_session_core_request_ended(request->lifecycle->core, &request->core);
  request->over(request, status);
}

void ps_repeat_request(void *owner, struct ps_session_request *request) {
  (void)owner;
  ask_now(request->context);
}

void ps_fail_request(void *owner, struct ps_session_request *request, struct ps_failure *failure) {
  (void)owner;
  struct ps_lifecycle_request *failed = request->context;
  failed->over(failed, ps_fail_as_core(failure));
}

/* Calls that wait for requests. */

struct lifecycle_task {
  struct ps_task task;
  const struct ps_lifecycle *lifecycle;
  struct ps_lifecycle_request *requests;
  size_t count;
  /** Number of requests that are not over, and one more while begin_task() or end_task() runs. */
  size_t open;
  /** The first error. */
  pserver_status status;
  struct ps_error error;
};

/** Counts one request less; the last one ends the task, which may be freed then. */
static void close_one(struct lifecycle_task *asked) {
  if (--asked->open > 0) return;
  if (asked->status != PSERVER_OK) ps_fail_with(&asked->error);
  ps_task_finish(&asked->task, asked->status);
}

static void note_over(struct ps_lifecycle_request *request, pserver_status status) {
  struct lifecycle_task *asked = request->owner;
  request->is_over = true;
  if (status != PSERVER_OK && asked->status == PSERVER_OK) {
    asked->status = status;
    asked->error = *ps_last_error();
  }
  close_one(asked);
}

static void begin_task(struct ps_task *task) {
  struct lifecycle_task *asked = (struct lifecycle_task *)task;
  asked->open = asked->count + 1;
  for (size_t i = 0; i < asked->count; i++) {
    ps_lifecycle_begin(asked->lifecycle, &asked->requests[i]);
  }
  close_one(asked);
}

static void end_task(struct ps_task *task, pserver_status why) {
  struct lifecycle_task *asked = (struct lifecycle_task *)task;
  struct ps_error error = *ps_last_error();
  asked->open++;
  for (size_t i = 0; i < asked->count; i++) {
    if (asked->requests[i].is_over) continue;
    ps_fail_with(&error);
    ps_lifecycle_end(&asked->requests[i], why);
  }
  close_one(asked);
}

pserver_status ps_run_lifecycles(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                 struct ps_lifecycle_request *requests, size_t count) {
  struct lifecycle_task asked = {.task = {.begin = begin_task, .end = end_task},
                                 .lifecycle = lifecycle,
                                 .requests = requests,
                                 .count = count};
  for (size_t i = 0; i < count; i++) {
    requests[i].over = note_over;
    requests[i].owner = &asked;
    requests[i].ends_at_ms = call->ends_at_ms;
  }
  return ps_task_run(call, &asked.task);
}

pserver_status ps_request_lifecycle(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                    const char *verb, ps_write_entries write, ps_read_reply read,
                                    void *context) {
  struct ps_lifecycle_request request = {.verb = verb,
                                         .write = write,
                                         .read = read,
                                         .context = context,
                                         .has_session = strcmp(verb, "status") != 0,
                                         .is_asked_again = true};
  return ps_run_lifecycles(call, lifecycle, &request, 1);
}
