/* The life of a trainer: it joins, renews its lease, joins anew, or is superseded. */
#include "calls/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calls/call.h"
#include "calls/client.h"
#include "errors/details.h"
#include "wire/clock.h"
#include "wire/requests.h"

#define REJOIN_MS 30000
#define LEAVE_MS 1000
/** How often one request may find its session ended before its error counts. */
#define REJOINS_MAX 3

struct lifecycle_request {
  const char *verb;
  write_entries write;
  read_reply read;
  void *context;
  /** Session it was written under; 0 if it has none. */
  uint64_t session;
  /** The session that an answer says is over. */
  uint64_t ended;
  bool has_session;
};

static pserver_status write_request(struct call *call, struct ask *ask, struct draft *draft) {
  struct lifecycle_request *request = ask->context;
  if (request->has_session) {
    pthread_mutex_lock(&call->client->lock);
    request->session = call->client->session.number;
    pthread_mutex_unlock(&call->client->lock);
    ps_draft_whole(draft, "session", request->session);
  }
  if (request->write != NULL) request->write(request->context, draft);
  return ps_draft_end(draft);
}

static pserver_status read_request(struct call *call, struct ask *ask, const struct message *message) {
  struct lifecycle_request *request = ask->context;
  return request->read == NULL ? PSERVER_OK : request->read(call, request->context, message);
}

/** Notes which session is over: the answer may be to a sending under an earlier one. */
static pserver_status note_ended(struct call *call, struct ask *ask, pserver_status status,
                                 const struct message *message) {
  (void)call;
  struct lifecycle_request *request = ask->context;
  struct value error;
  struct value details;
  request->ended = request->session;
  if (message != NULL && ps_map_find(&message->fields, "error", &error) &&
      ps_map_find(&error, "details", &details)) {
    ps_map_whole(&details, "received", &request->ended);
  }
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

static pserver_status ask_once(struct call *call, struct lifecycle_request *request) {
  struct ask ask = {.write = write_request,
                    .read = read_request,
                    .nobody = no_host,
                    .refused = note_ended,
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

/**
 * Waits until there is another session than the one that is over by REJOIN or SUPERSEDED. The newer one
 * that SUPERSEDED tells of may be the one that the client is joining; else it ends the client.
 */
static pserver_status await_next(struct call *call, uint64_t ended, pserver_status end) {
  struct client *client = call->client;
  struct session *session = &client->session;
  pserver_status status;
  pthread_mutex_lock(&client->lock);
  if (session->number == ended && !session->is_ended) ps_on_session_over(client, end);
  while ((status = ps_call_check(call)) == PSERVER_OK && session->is_ended) ps_call_wait(call, NEVER_MS);
  pthread_mutex_unlock(&client->lock);
  return status;
}

pserver_status ps_request_lifecycle(struct call *call, const char *verb, write_entries write,
                                    read_reply read, void *context) {
  struct lifecycle_request request = {.verb = verb,
                                      .write = write,
                                      .read = read,
                                      .context = context,
                                      .has_session = strcmp(verb, "status") != 0};
  for (int attempt = 1;; attempt++) {
    pserver_status status = ask_once(call, &request);
    if (!ps_ends_session(status) || attempt > REJOINS_MAX || call->is_inner) return status;
    status = await_next(call, request.ended, status);
    if (status != PSERVER_OK) return status;
  }
}

static void write_join(void *context, struct draft *draft) { ps_draft_text(draft, "token", context); }

static void read_synchronization(const struct value *fields, struct session *session) {
  struct value map;
  struct value mode;
  session->synchronization = TOGETHER_ASYNC;
  if (!ps_map_find(fields, "synchronization", &map) || !ps_map_find(&map, "mode", &mode)) return;
  if (ps_value_is_text(&mode, "sync")) session->synchronization = TOGETHER_SYNC;
  if (ps_value_is_text(&mode, "ssp")) session->synchronization = TOGETHER_SSP;
  ps_map_whole(&map, "staleness", &session->staleness);
  ps_map_whole(&map, "backups", &session->backups);
  ps_map_whole(&map, "trainers", &session->trainers);
  session->sums = ps_map_find(&map, "reduce", &mode) && ps_value_is_text(&mode, "sum");
}

static pserver_status read_join(struct call *call, void *context, const struct message *message) {
  (void)context;
  struct client *client = call->client;
  struct session read = {0};
  uint64_t lease_ms;
  uint64_t payload;
  const struct value *fields = &message->fields;
  bool is_valid = ps_map_whole(fields, "session", &read.number) && read.number > 0 &&
                  ps_map_whole(fields, "shards", &read.shards) && read.shards > 0 &&
                  read.shards <= PS_SHARDS_MAX && ps_map_whole(fields, "leaseMs", &lease_ms) &&
                  lease_ms > 0 && ps_map_whole(fields, "maxPayloadBytes", &payload);
  if (!is_valid) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "join: expected a session; received another reply");
  }
  read_synchronization(fields, &read);
  pthread_mutex_lock(&client->lock);
  struct session *session = &client->session;
  session->number = read.number;
  session->shards = read.shards;
  session->lease_ms = (int64_t)lease_ms;
  session->max_payload_bytes = (int64_t)payload;
  session->synchronization = read.synchronization;
  session->staleness = read.staleness;
  session->backups = read.backups;
  session->trainers = read.trainers;
  session->sums = read.sums;
  session->is_ended = false;
  ps_outbox_start(client->sender.outbox, read.number, ps_now_ms());
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

pserver_status ps_join_job(struct call *call) {
  char token[40];
  snprintf(token, sizeof token, "%016" PRIx64 "%016" PRIx64, ps_random_bits(), ps_random_bits());
  struct lifecycle_request request = {
      .verb = "join", .write = write_join, .read = read_join, .context = token};
  return ask_once(call, &request);
}

static void superseded(struct client *client) {
  char text[MESSAGE_BYTES];
  snprintf(text, sizeof text,
           "trainer \"%s\": a newer session has joined under this id, so this client can do nothing "
           "more; give every process an id of its own",
           client->trainer);
  ps_client_fail(client, PSERVER_ERR_SUPERSEDED, text);
}

void ps_on_session_over(struct client *client, pserver_status status) {
  struct session *session = &client->session;
  /* While another session is being joined, that one is the newest. */
  if (session->is_stopped || session->is_ended) return;
  if (ps_reaction_to(status) != PS_REACTION_REJOIN) {
    superseded(client);
    return;
  }
  session->is_ended = true;
  ps_outbox_pause(client->sender.outbox);
  ps_wake_all(client);
}

/** Runs one request of the lease thread; its failure becomes the last error. */
static pserver_status in_background(struct client *client, const char *what, int64_t timeout_ms) {
  struct call call;
  pserver_status status = ps_call_begin_inner(&call, client, what, timeout_ms);
  if (status != PSERVER_OK) return status;
  bool is_join = strcmp(what, "join") == 0;
  status = is_join ? ps_join_job(&call) : ps_request_lifecycle(&call, what, NULL, NULL, NULL);
  ps_call_end_inner(&call);
  return status;
}

/** Renews or rejoins; returns milliseconds until the next run. Lock held, released while it asks. */
static int64_t keep_alive(struct client *client) {
  struct session *session = &client->session;
  bool is_ended = session->is_ended;
  int64_t lease_ms = session->lease_ms;
  pthread_mutex_unlock(&client->lock);
  pserver_status status =
      is_ended ? in_background(client, "join", REJOIN_MS) : in_background(client, "renew", lease_ms);
  pthread_mutex_lock(&client->lock);
  if (session->is_stopped) return 0;
  if (is_ended && ps_reaction_to(status) == PS_REACTION_END) {
    superseded(client);
  } else if (ps_ends_session(status)) {
    ps_on_session_over(client, status);
  } else if (status != PSERVER_OK && !pserver_is_retryable(status)) {
    ps_client_fail(client, status, ps_last_failure()->text);
  }
  /* Without a host or broker the next run tries again; calls report the error themselves. */
  return session->is_ended ? 0 : session->lease_ms / 3;
}

void ps_wake_lease(struct client *client) {
  if (client->session.lease_call != NULL) ps_call_wake(client->session.lease_call);
}

/** Renews and rejoins until the session is stopped; meanwhile does what the outbox wants done. Lock held. */
static void keep_session(struct client *client, struct call *waiting) {
  int64_t due_ms = ps_now_ms() + client->session.lease_ms / 3;
  while (!client->session.is_stopped && client->failure.code == PSERVER_OK) {
    int64_t tick_at_ms = client->sender.tick_at_ms;
    int64_t now = ps_now_ms();
    waiting->ends_at_ms = NEVER_MS;
    if (client->session.is_ended || now >= due_ms) due_ms = now + keep_alive(client);
    else if (!ps_tick_if_due(client) && !ps_flush(client))
      ps_call_wait(waiting, due_ms < tick_at_ms ? due_ms : tick_at_ms);
  }
}

static void *live(void *closure) {
  struct client *client = closure;
  struct call waiting;
  pserver_status status = ps_call_begin_inner(&waiting, client, "lease", INT32_MAX);
  pthread_mutex_lock(&client->lock);
  if (status == PSERVER_OK) {
    client->session.lease_call = &waiting;
    keep_session(client, &waiting);
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
  int error = pthread_create(&client->session.thread, NULL, live, client);
  if (error != 0) return ps_fail(PSERVER_ERR_INTERNAL, "no thread for the lease: error %d", error);
  client->session.has_thread = true;
  return PSERVER_OK;
}

void ps_stop_lease(struct client *client) {
  pthread_mutex_lock(&client->lock);
  client->session.is_stopped = true;
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
  if (client->session.has_thread) pthread_join(client->session.thread, NULL);
  client->session.has_thread = false;
}

pserver_status ps_leave_job(struct client *client) {
  struct call call;
  if (client->session.number == 0) return PSERVER_OK;
  pserver_status status = ps_call_begin_inner(&call, client, "leave", LEAVE_MS);
  if (status != PSERVER_OK) return status;
  call.is_last = true;
  status = ps_request_lifecycle(&call, "leave", NULL, NULL, NULL);
  ps_call_end_inner(&call);
  return status;
}
