/* The session machine as a machine of scripts. Settings: `session`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "script.h"

#define REQUESTS_MAX 4096

static const struct listener *listener;
static struct ps_session_core core;
/** The requests that have not failed, by id. */
static struct ps_session_request *requests[REQUESTS_MAX];

static void on_rejoin(void *owner, int64_t timeout_ms) {
  (void)owner;
  tell(listener, "rejoin %" PRId64, timeout_ms);
}

static void on_renew(void *owner, int64_t timeout_ms) {
  (void)owner;
  tell(listener, "renew %" PRId64, timeout_ms);
}

static void on_set_renewal(void *owner, int64_t at_ms) {
  (void)owner;
  tell(listener, "set-renewal %" PRId64, at_ms == PS_NEVER_MS ? -1 : at_ms);
}

static void on_repeat_request(void *owner, struct ps_session_request *request) {
  (void)owner;
  tell(listener, "repeat-request %" PRIu64, request->id);
}

static void on_fail_request(void *owner, struct ps_session_request *request,
                            struct ps_failure *failure) {
  (void)owner;
  tell(listener, "fail-request %" PRIu64 " %s", request->id, code_of(failure));
  requests[request->id] = NULL;
  free(request);
}

static void on_lose_client(void *owner, struct ps_failure *failure) {
  (void)owner;
  tell(listener, "lose-client %s", code_of(failure));
}

static void on_session_ended(void *owner) {
  (void)owner;
  tell(listener, "session-ended");
}

static void on_session_began(void *owner, uint64_t session, int64_t now_ms) {
  (void)owner;
  (void)now_ms;
  tell(listener, "session-began %" PRIu64, session);
}

static void begin(const struct listener *tells, struct words *settings) {
  static const struct ps_session_commands commands = {
      NULL,           on_rejoin, on_renew, on_set_renewal, on_repeat_request, on_fail_request,
      on_lose_client,
  };
  static const struct ps_session_listener session_listener = {NULL, on_session_ended,
                                                              on_session_began};
  (void)settings;
  listener = tells;
  core = (struct ps_session_core){.commands = &commands, .listener = &session_listener};
}

static struct ps_session_request *request_of(uint64_t id) {
  if (id >= REQUESTS_MAX) stop("too many requests", "session");
  if (requests[id] != NULL) return requests[id];
  requests[id] = calloc(1, sizeof *requests[id]);
  if (requests[id] == NULL) stop("no memory", "request");
  requests[id]->id = id;
  return requests[id];
}

/** A code and the session that it is about. */
static struct ps_failure *take_end(struct words *words) {
  struct ps_failure *failure = take_failure(words);
  failure->received = take_whole(words);
  return failure;
}

static void take_request_failed(struct words *words) {
  struct ps_session_request *request = request_of(take_whole(words));
  struct ps_failure *failure = take_end(words);
  ps_session_core_request_failed(&core, request, failure);
  ps_failure_drop(failure);
}

static void take_failed(const char *event, struct words *words) {
  struct ps_failure *failure = take_end(words);
  if (is_same(event, "rejoin-failed")) ps_session_core_rejoin_failed(&core, failure);
  else if (is_same(event, "ended")) ps_session_core_ended(&core, failure);
  else if (is_same(event, "renew-failed")) {
    ps_session_core_renew_failed(&core, failure, take_ms(words));
  } else {
    stop("no event of the session", event);
  }
  ps_failure_drop(failure);
}

static void take_request_ended(struct words *words) {
  uint64_t id = take_whole(words);
  struct ps_session_request *request = request_of(id);
  ps_session_core_request_ended(&core, request);
  requests[id] = NULL;
  free(request);
}

static void take(const char *event, struct words *words) {
  if (is_same(event, "joined")) {
    uint64_t session = take_whole(words);
    int64_t lease_ms = take_ms(words);
    ps_session_core_joined(&core, session, lease_ms, take_ms(words));
  } else if (is_same(event, "renewal-due")) {
    ps_session_core_renewal_due(&core);
  } else if (is_same(event, "renewed")) {
    ps_session_core_renewed(&core, take_ms(words));
  } else if (is_same(event, "request-failed")) {
    take_request_failed(words);
  } else if (is_same(event, "request-ended")) {
    take_request_ended(words);
  } else if (is_same(event, "stop")) {
    ps_session_core_stop(&core);
  } else {
    take_failed(event, words);
  }
}

static void release(void) {
  ps_session_core_release(&core);
  for (size_t i = 0; i < REQUESTS_MAX; i++) {
    free(requests[i]);
    requests[i] = NULL;
  }
}

const struct machine session_machine = {"session", begin, take, release};
