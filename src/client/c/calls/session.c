/* The life of a trainer, as the session core decides: its joins, and the renewals of its lease. */
#include "calls/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calls/client.h"
#include "calls/lifecycle-request.h"
#include "wire/clock.h"

#define LEAVE_MS 1000

static void write_join(void *context, struct draft *draft) { ps_draft_text(draft, "token", context); }

static void read_synchronization(const struct value *fields, struct job_terms *terms) {
  struct value map;
  struct value text;
  struct ps_synchronization *synchronization = &terms->synchronization;
  if (!ps_map_find(fields, "synchronization", &map) || !ps_map_find(&map, "mode", &text)) return;
  if (ps_value_is_text(&text, "sync")) synchronization->mode = PS_SYNC_SYNC;
  if (ps_value_is_text(&text, "ssp")) synchronization->mode = PS_SYNC_SSP;
  ps_map_whole(&map, "staleness", &synchronization->staleness);
  ps_map_whole(&map, "backups", &synchronization->backups);
  ps_map_whole(&map, "trainers", &terms->trainers);
  terms->sums = ps_map_find(&map, "reduce", &text) && ps_value_is_text(&text, "sum");
}

static pserver_status read_join(struct call *call, void *context, const struct message *message) {
  (void)context;
  struct client *client = call->client;
  struct job_terms terms = {0};
  uint64_t session;
  uint64_t shards;
  uint64_t lease_ms;
  uint64_t payload;
  const struct value *fields = &message->fields;
  bool is_valid = ps_map_whole(fields, "session", &session) && session > 0 &&
                  ps_map_whole(fields, "shards", &shards) && shards > 0 && shards <= PS_SHARDS_MAX &&
                  ps_map_whole(fields, "leaseMs", &lease_ms) && lease_ms > 0 &&
                  ps_map_whole(fields, "maxPayloadBytes", &payload);
  if (!is_valid) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "join: expected a session; received another reply");
  }
  terms.shards = (unsigned)shards;
  read_synchronization(fields, &terms);
  pthread_mutex_lock(&client->lock);
  client->session.terms = terms;
  ps_session_core_joined(&client->session.core, session, (int64_t)lease_ms, ps_now_ms());
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

pserver_status ps_join_job(struct call *call) {
  char token[40];
  snprintf(token, sizeof token, "%016" PRIx64 "%016" PRIx64, ps_random_bits(), ps_random_bits());
  struct lifecycle_request request = {
      .verb = "join", .write = write_join, .read = read_join, .context = token};
  return ps_ask_lifecycle(call, &request);
}

static void note_rejoin(void *shell, int64_t timeout_ms) {
  struct client *client = shell;
  client->session.rejoin_ms = timeout_ms;
  ps_wake_lease(client);
}

static void note_renew(void *shell, int64_t timeout_ms) {
  struct client *client = shell;
  client->session.renew_ms = timeout_ms;
  ps_wake_lease(client);
}

static void set_renewal(void *shell, int64_t at_ms) {
  struct client *client = shell;
  client->session.renewal_at_ms = at_ms;
  ps_wake_lease(client);
}

static void lose_client(void *shell, struct ps_failure *failure) {
  struct client *client = shell;
  char text[MESSAGE_BYTES];
  snprintf(text, sizeof text,
           "trainer \"%s\": a newer session has joined under this id, so this client can do nothing "
           "more; give every process an id of its own",
           client->trainer);
  bool is_superseded = ps_reaction_to(failure->code) == PS_REACTION_END;
  ps_client_fail(client, failure->code, is_superseded ? text : failure->text);
}

static void session_ended(void *owner) {
  struct client *client = owner;
  ps_outbox_pause(client->sender.outbox);
}

static void session_began(void *owner, uint64_t session, int64_t now_ms) {
  struct client *client = owner;
  const struct job_terms *terms = &client->session.terms;
  ps_steps_core_session_began(&client->steps.core, session, terms->shards, terms->synchronization);
  ps_outbox_start(client->sender.outbox, session, now_ms);
}

void ps_session_init(struct client *client) {
  struct session *session = &client->session;
  session->commands = (struct ps_session_commands){.shell = client,
                                                   .rejoin = note_rejoin,
                                                   .renew = note_renew,
                                                   .set_renewal = set_renewal,
                                                   .repeat_request = ps_repeat_request,
                                                   .fail_request = ps_fail_request,
                                                   .lose_client = lose_client};
  session->listener = (struct ps_session_listener){
      .owner = client, .session_ended = session_ended, .session_began = session_began};
  session->core =
      (struct ps_session_core){.commands = &session->commands, .listener = &session->listener};
  session->renewal_at_ms = NEVER_MS;
}

/** One request of the client's own; its error, with one reference, or NULL. Lock held, released while it
 * asks. */
static struct ps_failure *ask_in_background(struct client *client, const char *verb,
                                            int64_t timeout_ms) {
  struct call call;
  struct lifecycle_request request = {.verb = verb, .has_session = true};
  pthread_mutex_unlock(&client->lock);
  pserver_status status = ps_call_begin_inner(&call, client, verb, timeout_ms);
  if (status == PSERVER_OK) {
    status = strcmp(verb, "join") == 0 ? ps_join_job(&call) : ps_ask_lifecycle(&call, &request);
    ps_call_end_inner(&call);
  }
  struct ps_failure *failure = status == PSERVER_OK ? NULL : ps_lifecycle_failure(&request);
  pthread_mutex_lock(&client->lock);
  return failure;
}

static void rejoin(struct client *client, int64_t timeout_ms) {
  struct ps_failure *failure = ask_in_background(client, "join", timeout_ms);
  if (failure != NULL) ps_session_core_rejoin_failed(&client->session.core, failure);
  ps_failure_drop(failure);
}

static void renew(struct client *client, int64_t timeout_ms) {
  struct ps_session_core *core = &client->session.core;
  struct ps_failure *failure = ask_in_background(client, "renew", timeout_ms);
  if (failure == NULL) ps_session_core_renewed(core, ps_now_ms());
  else ps_session_core_renew_failed(core, failure, ps_now_ms());
  ps_failure_drop(failure);
}

bool ps_keep_session(struct client *client) {
  struct session *session = &client->session;
  if (ps_now_ms() >= session->renewal_at_ms) {
    session->renewal_at_ms = NEVER_MS;
    ps_session_core_renewal_due(&session->core);
  }
  int64_t rejoin_ms = session->rejoin_ms;
  int64_t renew_ms = session->renew_ms;
  session->rejoin_ms = 0;
  session->renew_ms = 0;
  if (rejoin_ms > 0) rejoin(client, rejoin_ms);
  if (renew_ms > 0) renew(client, renew_ms);
  return rejoin_ms + renew_ms > 0;
}

void ps_wake_lease(struct client *client) {
  if (client->session.lease_call != NULL) ps_call_wake(client->session.lease_call);
}

/** Keeps the session until it is stopped; meanwhile does what the outbox wants done. Lock held. */
static void keep_until_stopped(struct client *client, struct call *waiting) {
  const struct session *session = &client->session;
  waiting->ends_at_ms = NEVER_MS;
  while (!session->core.is_stopped && client->failure.code == PSERVER_OK) {
    if (ps_keep_session(client) || ps_tick_if_due(client) || ps_flush(client)) continue;
    int64_t tick_at_ms = client->sender.tick_at_ms;
    ps_call_wait(waiting, session->renewal_at_ms < tick_at_ms ? session->renewal_at_ms : tick_at_ms);
  }
}

static void *keep_lease(void *closure) {
  struct client *client = closure;
  struct call waiting;
  pserver_status status = ps_call_begin_inner(&waiting, client, "lease", INT32_MAX);
  pthread_mutex_lock(&client->lock);
  if (status == PSERVER_OK) {
    client->session.lease_call = &waiting;
    keep_until_stopped(client, &waiting);
    client->session.lease_call = NULL;
  } else {
    ps_client_fail(client, PSERVER_ERR_INTERNAL, ps_last_failure()->text);
  }
  pthread_mutex_unlock(&client->lock);
  if (status == PSERVER_OK) ps_call_end_inner(&waiting);
  nats_ReleaseThreadMemory();
  return NULL;
}

pserver_status ps_start_lease(struct client *client) {
  int error = pthread_create(&client->session.thread, NULL, keep_lease, client);
  if (error != 0) return ps_fail(PSERVER_ERR_INTERNAL, "no thread for the lease: error %d", error);
  client->session.has_thread = true;
  return PSERVER_OK;
}

void ps_stop_lease(struct client *client) {
  pthread_mutex_lock(&client->lock);
  ps_session_core_stop(&client->session.core);
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
  if (client->session.has_thread) pthread_join(client->session.thread, NULL);
  client->session.has_thread = false;
}

pserver_status ps_leave_job(struct client *client) {
  struct call call;
  struct lifecycle_request request = {.verb = "leave", .has_session = true};
  if (client->session.core.session == 0) return PSERVER_OK;
  pserver_status status = ps_call_begin_inner(&call, client, "leave", LEAVE_MS);
  if (status != PSERVER_OK) return status;
  call.is_last = true;
  status = ps_ask_lifecycle(&call, &request);
  ps_call_end_inner(&call);
  return status;
}
