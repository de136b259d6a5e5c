#include "calls/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Joins, rejoins and renews as the session core decides. */

/* Joining. */

static void begin_join(struct ps_session *session, struct ps_join *join) {
  *join = (struct ps_join){.session = session, .begun_ms = ps_now_ms()};
  snprintf(join->token, sizeof join->token, "%016" PRIx64 "%016" PRIx64, ps_random_bits(),
           ps_random_bits());
}

static void write_join(void *context, struct ps_draft *draft) {
  const struct ps_join *join = context;
  ps_draft_text(draft, "token", join->token);
}

static void read_synchronization(const struct ps_value *fields, struct ps_job_terms *terms) {
  struct ps_value map;
  struct ps_value text;
  struct ps_synchronization *synchronization = &terms->synchronization;
  if (!ps_map_find(fields, "synchronization", &map) || !ps_map_find(&map, "mode", &text)) return;
  if (ps_value_is_text(&text, "sync")) synchronization->mode = PS_SYNC_SYNC;
  if (ps_value_is_text(&text, "ssp")) synchronization->mode = PS_SYNC_SSP;
  if (ps_value_is_text(&text, "diloco")) synchronization->mode = PS_SYNC_DILOCO;
  ps_map_whole(&map, "staleness", &synchronization->staleness);
  ps_map_whole(&map, "backups", &synchronization->backups);
  ps_map_whole(&map, "trainers", &terms->trainers);
  ps_map_whole(&map, "quorum", &terms->quorum);
  ps_map_whole(&map, "graceCapMs", &terms->grace_cap_ms);
  terms->sums = ps_map_find(&map, "reduce", &text) && ps_value_is_text(&text, "sum");
}

static pserver_status read_join(void *context, const struct ps_message *message) {
  struct ps_join *join = context;
  uint64_t shards;
  uint64_t lease_ms;
  uint64_t payload;
  const struct ps_value *fields = &message->fields;
  bool is_valid = ps_map_whole(fields, "session", &join->number) && join->number > 0 &&
                  ps_map_copy_text(fields, "made", join->made, sizeof join->made) &&
                  ps_map_whole(fields, "shards", &shards) && shards > 0 && shards <= PS_SHARDS_MAX &&
                  ps_map_whole(fields, "leaseMs", &lease_ms) && lease_ms > 0 &&
                  ps_map_whole(fields, "maxPayloadBytes", &payload);
  if (!is_valid) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "join: expected a session; received another reply");
  }
  join->lease_ms = (int64_t)lease_ms;
  join->terms.shards = (unsigned)shards;
  read_synchronization(fields, &join->terms);
  return PSERVER_OK;
}

static void take_join(struct ps_join *join) {
  struct ps_session *session = join->session;
  session->terms = join->terms;
  memcpy(session->lifecycle.made, join->made, sizeof session->lifecycle.made);
  ps_session_note_held(session, join->begun_ms);
  ps_session_core_joined(&session->core, join->number, join->lease_ms, ps_now_ms());
  session->deps.held(session->deps.owner);
}

static void take_join_on_io_thread(struct ps_client *client, void *context) {
  (void)client;
  take_join(context);
}

pserver_status ps_join_job(struct ps_call *call, struct ps_session *session) {
  struct ps_join join;
  begin_join(session, &join);
  struct ps_lifecycle_request request = {
      .verb = "join", .write = write_join, .read = read_join, .context = &join};
  pserver_status status = ps_run_lifecycles(call, &session->lifecycle, &request, 1);
  if (status == PSERVER_OK) ps_run_on_io_thread(call, take_join_on_io_thread, &join);
  return status;
}

pserver_status ps_leave_job(struct ps_call *call, struct ps_session *session) {
  struct ps_lifecycle_request request = {.verb = "leave", .has_session = true};
  return ps_run_lifecycles(call, &session->lifecycle, &request, 1);
}

/* Requests that no call waits for. */

static void begin_background(struct ps_session *session, struct ps_background_request *background,
                             int64_t timeout_ms) {
  if (background->is_under_way) return;
  background->is_under_way = true;
  background->begun_ms = ps_now_ms();
  background->timeout_ms = timeout_ms;
  background->request.ends_at_ms = background->begun_ms + timeout_ms;
  ps_timer_set(session->deps.timers, &background->deadline, background->request.ends_at_ms);
  ps_lifecycle_begin(&session->lifecycle, &background->request);
}

static void end_background(void *context) {
  struct ps_background_request *background = context;
  const char *verb = background->request.verb;
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: not finished within %" PRId64 " ms", verb, background->timeout_ms);
  ps_lifecycle_end(&background->request, ps_detail_signed("timeoutMs", background->timeout_ms));
}

/** Notes that a request is over; returns its failure with one reference, NULL if it has succeeded. */
static struct ps_failure *note_over(struct ps_session *session, struct ps_background_request *background,
                                    pserver_status status) {
  background->is_under_way = false;
  ps_timer_set(session->deps.timers, &background->deadline, PS_NEVER_MS);
  return status == PSERVER_OK ? NULL : ps_lifecycle_failure(&background->request);
}

static void rejoined(struct ps_lifecycle_request *request, pserver_status status) {
  struct ps_session *session = request->owner;
  struct ps_failure *failure = note_over(session, &session->joining, status);
  if (failure == NULL) take_join(&session->join);
  else ps_session_core_rejoin_failed(&session->core, failure);
  ps_failure_drop(failure);
}

static void renewed(struct ps_lifecycle_request *request, pserver_status status) {
  struct ps_session *session = request->owner;
  struct ps_failure *failure = note_over(session, &session->renewing, status);
  if (failure == NULL) {
    ps_session_note_held(session, session->renewing.begun_ms);
    ps_session_core_renewed(&session->core, ps_now_ms());
    session->deps.held(session->deps.owner);
  } else {
    ps_session_core_renew_failed(&session->core, failure, ps_now_ms());
  }
  ps_failure_drop(failure);
}

/* Commands of the core. */

static void rejoin(void *owner, int64_t timeout_ms) {
  struct ps_session *session = owner;
  if (session->joining.is_under_way) return;
  begin_join(session, &session->join);
  begin_background(session, &session->joining, timeout_ms);
}

static void renew(void *owner, int64_t timeout_ms) {
  struct ps_session *session = owner;
  begin_background(session, &session->renewing, timeout_ms);
}

static void set_renewal(void *owner, int64_t at_ms) {
  struct ps_session *session = owner;
  ps_timer_set(session->deps.timers, &session->renewal, at_ms);
}

static void on_renewal_due(void *context) {
  struct ps_session *session = context;
  ps_session_core_renewal_due(&session->core);
}

static void lose_client(void *owner, struct ps_failure *failure) {
  struct ps_session *session = owner;
  char text[PS_ERROR_TEXT_BYTES];
  snprintf(text, sizeof text,
           "trainer \"%s\": a newer session has joined under this id, so this client can do nothing "
           "more; give every process an id of its own",
           session->deps.identity->trainer);
  bool is_superseded = failure->code == PSERVER_ERR_SUPERSEDED;
  session->deps.lost(session->deps.owner, failure->code, is_superseded ? text : failure->text);
}

static void session_ended(void *owner) {
  const struct ps_session *session = owner;
  session->deps.ended(session->deps.owner);
}

static void session_began(void *owner, uint64_t number, int64_t now_ms) {
  const struct ps_session *session = owner;
  session->deps.began(session->deps.owner, number, &session->terms, now_ms);
}

void ps_session_init(struct ps_session *session, const struct ps_session_deps *deps) {
  *session = (struct ps_session){
      .deps = *deps,
      .lifecycle = {.identity = deps->identity, .requests = deps->requests, .core = &session->core},
      .core = {.commands = &session->commands, .listener = &session->listener},
      .commands = {.owner = session,
                   .rejoin = rejoin,
                   .renew = renew,
                   .set_renewal = set_renewal,
                   .repeat_request = ps_repeat_request,
                   .fail_request = ps_fail_request,
                   .lose_client = lose_client},
      .listener = {.owner = session, .session_ended = session_ended, .session_began = session_began},
      .renewal = {.due = on_renewal_due, .context = session},
      .renewing = {.request = {.verb = "renew", .has_session = true, .over = renewed, .owner = session},
                   .deadline = {.due = end_background, .context = &session->renewing}},
      .joining = {.request = {.verb = "join",
                              .write = write_join,
                              .read = read_join,
                              .context = &session->join,
                              .over = rejoined,
                              .owner = session},
                  .deadline = {.due = end_background, .context = &session->joining}},
  };
}

void ps_session_note_held(struct ps_session *session, int64_t asked_ms) {
  if (asked_ms > session->held_at_ms) session->held_at_ms = asked_ms;
}

void ps_session_confirm(struct ps_session *session) {
  if (session->lifecycle.made[0] != '\0') ps_session_core_renewal_due(&session->core);
}

bool ps_session_may_be_out(const struct ps_session *session) {
  return ps_now_ms() - session->held_at_ms >= session->core.lease_ms;
}

void ps_session_stop(struct ps_session *session) {
  ps_session_core_stop(&session->core);
  struct ps_background_request *const all[] = {&session->renewing, &session->joining};
  for (size_t i = 0; i < 2; i++) {
    if (!all[i]->is_under_way) continue;
    ps_lifecycle_end(&all[i]->request, ps_fail(PSERVER_ERR_CLOSED, "the client is closed"));
  }
}
