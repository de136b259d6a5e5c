/* Lifecycle requests: each is asked under whatever session is the current one. */
#include "calls/lifecycle-request.h"

#include <stdio.h>
#include <string.h>

#include "calls/client.h"
#include "errors/details.h"
#include "push/call-error.h"
#include "wire/clock.h"
#include "wire/requests.h"

/** A request that has failed, and waits for what the core decides about it. */
struct failed_request {
  struct ps_session_request core;
  struct call *call;
  enum { DECISION_PENDING, DECISION_REPEAT, DECISION_FAIL } decision;
  /** Why it has failed for good. */
  struct ps_failure *failure;
};

static pserver_status write_request(struct call *call, struct ask *ask, struct draft *draft) {
  struct lifecycle_request *request = ask->context;
  if (request->has_session) {
    pthread_mutex_lock(&call->client->lock);
    uint64_t session = call->client->session.core.session;
    pthread_mutex_unlock(&call->client->lock);
    ps_draft_whole(draft, "session", session);
  }
  if (request->write != NULL) request->write(request->context, draft);
  return ps_draft_end(draft);
}

static pserver_status read_request(struct call *call, struct ask *ask, const struct message *message) {
  struct lifecycle_request *request = ask->context;
  return request->read == NULL ? PSERVER_OK : request->read(call, request->context, message);
}

static pserver_status note_received(struct call *call, struct ask *ask, pserver_status status,
                                    const struct message *message) {
  (void)call;
  struct lifecycle_request *request = ask->context;
  request->received = message == NULL ? 0 : ps_received_session(message);
  return status;
}

static pserver_status no_host(struct call *call, struct ask *ask) {
  (void)ask;
  ps_fail(PSERVER_ERR_NO_HOST,
          "no host of job \"%s\" answers: start one on this broker, or check the name of the job "
          "and the broker's address",
          call->client->job);
  return ps_detail_text("job", call->client->job);
}

pserver_status ps_ask_lifecycle(struct call *call, struct lifecycle_request *request) {
  struct ask ask = {.write = write_request,
                    .read = read_request,
                    .nobody = no_host,
                    .refused = note_received,
                    .context = request};
  snprintf(ask.subject, sizeof ask.subject, "ps.%s.lifecycle.%s.%s", call->client->job, call->client->id,
           request->verb);
  pserver_status status = ps_run_requests(call, &ask, 1);
  if (status != PSERVER_ERR_TIMEOUT || ps_call_remaining_ms(call) > 0) return status;
  char text[MESSAGE_BYTES / 2];
  snprintf(text, sizeof text, "%.500s", ps_last_failure()->text);
  status = no_host(call, &ask);
  ps_fail_prefixed("%s; ", text);
  return status;
}

struct ps_failure *ps_lifecycle_failure(const struct lifecycle_request *request) {
  struct ps_failure *failure = ps_failure_of_last();
  if (failure->references > 0) failure->received = request->received;
  return failure;
}

void ps_repeat_request(void *shell, struct ps_session_request *request) {
  (void)shell;
  struct failed_request *failed = request->context;
  failed->decision = DECISION_REPEAT;
  ps_call_wake(failed->call);
}

void ps_fail_request(void *shell, struct ps_session_request *request, struct ps_failure *failure) {
  (void)shell;
  struct failed_request *failed = request->context;
  failed->decision = DECISION_FAIL;
  failed->failure = ps_failure_keep(failure);
  ps_call_wake(failed->call);
}

/** Waits for what the core decides about a request that has failed: OK to ask again. */
static pserver_status await_decision(struct failed_request *failed, struct ps_failure *failure) {
  struct call *call = failed->call;
  struct ps_session_core *core = &call->client->session.core;
  pserver_status status = PSERVER_OK;
  pthread_mutex_lock(&call->client->lock);
  failed->decision = DECISION_PENDING;
  ps_session_core_request_failed(core, &failed->core, failure);
  while (failed->decision == DECISION_PENDING && (status = ps_call_check(call)) == PSERVER_OK) {
    ps_call_wait(call, NEVER_MS);
  }
  if (failed->decision == DECISION_PENDING) ps_session_core_request_ended(core, &failed->core);
  if (failed->decision == DECISION_FAIL) status = ps_fail_as_core(failed->failure);
  ps_failure_drop(failed->failure);
  ps_failure_drop(failure);
  pthread_mutex_unlock(&call->client->lock);
  return status;
}

pserver_status ps_request_lifecycle(struct call *call, const char *verb, write_entries write,
                                    read_reply read, void *context) {
  struct lifecycle_request request = {.verb = verb,
                                      .write = write,
                                      .read = read,
                                      .context = context,
                                      .has_session = strcmp(verb, "status") != 0};
  struct failed_request failed = {.core.context = &failed, .call = call};
  pserver_status status;
  while ((status = ps_ask_lifecycle(call, &request)) != PSERVER_OK) {
    status = await_decision(&failed, ps_lifecycle_failure(&request));
    if (status != PSERVER_OK) return status;
  }
  return PSERVER_OK;
}
