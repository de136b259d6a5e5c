#include "core/core.h"

#include <pserver.h>
#include <stddef.h>

/* Joining, renewing and rejoining, and requests that find their session ended. */

/** Time for one attempt to rejoin. */
#define REJOIN_MS 30000
/** How often a request may find its session ended before it fails. */
#define REJOINS_MAX 3

/** Whether a failure says that an earlier session than the current one is over. */
static bool is_of_earlier(const struct ps_session_core *core, const struct ps_failure *failure) {
  return failure->received != 0 && failure->received != core->session;
}

static void schedule_renewal(struct ps_session_core *core, int64_t now_ms) {
  if (core->is_stopped) return;
  core->commands->set_renewal(core->commands->owner, now_ms + core->lease_ms / 3);
}

static void rejoin(struct ps_session_core *core) {
  if (core->is_rejoining) return;
  core->is_rejoining = true;
  core->commands->set_renewal(core->commands->owner, PS_NEVER_MS);
  core->listener->session_ended(core->listener->owner);
  core->commands->rejoin(core->commands->owner, REJOIN_MS);
}

static void fail_request(struct ps_session_core *core, struct ps_session_request *request,
                         struct ps_failure *failure) {
  ps_failure_set(&request->superseded, NULL);
  core->commands->fail_request(core->commands->owner, request, failure);
}

/** Sends a request again that has waited for a new session. */
static void go_on(struct ps_session_core *core, struct ps_session_request *request) {
  struct ps_failure *superseded = request->superseded;
  request->superseded = NULL;
  if (superseded == NULL || is_of_earlier(core, superseded)) {
    core->commands->repeat_request(core->commands->owner, request);
  } else {
    ps_session_core_ended(core, superseded);
    fail_request(core, request, superseded);
  }
  ps_failure_drop(superseded);
}

void ps_session_core_joined(struct ps_session_core *core, uint64_t session, int64_t lease_ms,
                            int64_t now_ms) {
  core->session = session;
  core->lease_ms = lease_ms;
  core->is_rejoining = false;
  core->is_rejoin_needed = false;
  core->listener->session_began(core->listener->owner, session, now_ms);
  schedule_renewal(core, now_ms);
  /* Those that begin to wait meanwhile wait for the next result. */
  size_t left = core->waiting.count;
  struct ps_session_request *request;
  for (; left > 0 && (request = ps_queue_take(&core->waiting)) != NULL; left--) {
    go_on(core, request);
  }
  struct ps_failure *superseded = core->superseded;
  core->superseded = NULL;
  if (superseded != NULL) ps_session_core_ended(core, superseded);
  ps_failure_drop(superseded);
}

void ps_session_core_rejoin_failed(struct ps_session_core *core, struct ps_failure *failure) {
  if (pserver_is_retryable(failure->code) && !core->is_stopped) {
    core->commands->rejoin(core->commands->owner, REJOIN_MS);
    return;
  }
  bool is_lost = core->is_rejoin_needed || ps_reaction_to(failure->code) == PS_REACTION_END;
  core->is_rejoining = false;
  core->is_rejoin_needed = false;
  ps_failure_set(&core->superseded, NULL);
  /* Those that begin to wait meanwhile wait for the next result. */
  size_t left = core->waiting.count;
  struct ps_session_request *request;
  for (; left > 0 && (request = ps_queue_take(&core->waiting)) != NULL; left--) {
    fail_request(core, request, failure);
  }
  if (is_lost) core->commands->lose_client(core->commands->owner, failure);
}

void ps_session_core_renewal_due(struct ps_session_core *core) {
  if (!core->is_stopped) core->commands->renew(core->commands->owner, core->lease_ms);
}

void ps_session_core_renewed(struct ps_session_core *core, int64_t now_ms) {
  schedule_renewal(core, now_ms);
}

void ps_session_core_renew_failed(struct ps_session_core *core, struct ps_failure *failure,
                                  int64_t now_ms) {
  if (ps_ends_session(failure->code)) {
    ps_session_core_ended(core, failure);
  } else if (!core->is_stopped) {
    /* No host or broker answers now: the next renewal tries again, and calls report it themselves. */
    if (pserver_is_retryable(failure->code)) schedule_renewal(core, now_ms);
    else core->commands->lose_client(core->commands->owner, failure);
  }
}

void ps_session_core_ended(struct ps_session_core *core, struct ps_failure *failure) {
  if (core->is_stopped || is_of_earlier(core, failure)) return;
  if (ps_reaction_to(failure->code) == PS_REACTION_REJOIN) {
    core->is_rejoin_needed = true;
    rejoin(core);
  } else if (core->is_rejoining) {
    ps_failure_set_first(&core->superseded, failure);
  } else {
    ps_session_core_stop(core);
    core->commands->lose_client(core->commands->owner, failure);
  }
}

void ps_session_core_request_failed(struct ps_session_core *core, struct ps_session_request *request,
                                    struct ps_failure *failure) {
  request->rejoins++;
  bool can_go_on = request->rejoins <= REJOINS_MAX && !core->is_stopped;
  if (!ps_ends_session(failure->code) || !can_go_on) {
    fail_request(core, request, failure);
  } else if (is_of_earlier(core, failure)) {
    core->commands->repeat_request(core->commands->owner, request);
  } else if (ps_reaction_to(failure->code) == PS_REACTION_REJOIN) {
    ps_queue_append(&core->waiting, &request->place, request);
    rejoin(core);
  } else if (core->is_rejoining) {
    ps_failure_set(&request->superseded, failure);
    ps_queue_append(&core->waiting, &request->place, request);
  } else {
    ps_session_core_ended(core, failure);
    fail_request(core, request, failure);
  }
}

void ps_session_core_request_ended(struct ps_session_core *core, struct ps_session_request *request) {
  ps_failure_set(&request->superseded, NULL);
  ps_queue_remove(&core->waiting, &request->place);
}

void ps_session_core_stop(struct ps_session_core *core) {
  core->is_stopped = true;
  core->commands->set_renewal(core->commands->owner, PS_NEVER_MS);
}

void ps_session_core_release(struct ps_session_core *core) {
  ps_failure_set(&core->superseded, NULL);
  struct ps_session_request *request;
  while ((request = ps_queue_first(&core->waiting)) != NULL) {
    ps_session_core_request_ended(core, request);
  }
}
