/* pserver_connect() and pserver_close(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls/call.h"
#include "calls/client.h"
#include "calls/fallbacks.h"
#include "wire/clock.h"
#include "wire/connecting.h"
#include "wire/connection.h"

#define CONNECT_MS 10000
#define ATTEMPT_MS 5000
#define CALL_MS 30000
#define CLOSE_MS 10000
#define IN_FLIGHT_BYTES ((size_t)16 * 1024 * 1024)
/** How long the threads of a call that was ended may take to leave it. */
#define ENDING_MS 10000

void pserver_options_init(pserver_options *options) {
  if (options == NULL) return;
  *options = (pserver_options){.struct_size = sizeof *options,
                               .connect_timeout_ms = CONNECT_MS,
                               .attempt_timeout_ms = ATTEMPT_MS,
                               .call_timeout_ms = CALL_MS,
                               .in_flight_bytes = IN_FLIGHT_BYTES};
}

static pserver_status check_options(const pserver_options *options) {
  if (options == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_connect: expected options; received NULL");
  }
  if (options->struct_size != sizeof *options) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_connect: struct_size: expected %zu; received %zu: fill the options with "
                   "pserver_options_init",
                   sizeof *options, options->struct_size);
  }
  if (options->connect_timeout_ms <= 0 || options->attempt_timeout_ms <= 0 ||
      options->call_timeout_ms <= 0 || options->in_flight_bytes == 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_connect: expected timeouts and in_flight_bytes of more than 0");
  }
  return ps_check_job_name(options->job);
}

/** Host name, process and a random part: used once. */
static void unique_trainer(char id[ID_SIZE]) {
  char host[ID_SIZE];
  if (gethostname(host, sizeof host - 32) != 0) host[0] = '\0';
  host[sizeof host - 32] = '\0';
  for (char *c = host; *c != '\0'; c++) {
    bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!is_plain) *c = '-';
  }
  snprintf(id, ID_SIZE, "%.31s-%d-%08" PRIx64, host, (int)getpid(), ps_random_bits() & UINT32_MAX);
}

static pserver_status name_client(struct client *client, const pserver_options *options) {
  char made[ID_SIZE];
  char token[ID_SIZE];
  unique_trainer(made);
  const char *trainer = options->trainer == NULL ? made : options->trainer;
  pserver_status status = ps_escape_id(trainer, client->id);
  if (status != PSERVER_OK) return status;
  snprintf(client->trainer, sizeof client->trainer, "%s", trainer);
  snprintf(client->job, sizeof client->job, "%s", options->job);
  snprintf(token, sizeof token, "%08" PRIx64, ps_random_bits() & UINT32_MAX);
  if (options->inbox_token != NULL) status = ps_escape_id(options->inbox_token, token);
  if (status != PSERVER_OK) return ps_fail_prefixed("inbox_token: ");
  snprintf(client->inbox, sizeof client->inbox, "_INBOX_%s.%s.%s", client->job, client->id, token);
  return PSERVER_OK;
}

static pserver_status make_client(const pserver_options *options, struct client **made) {
  struct client *client = calloc(1, sizeof *client);
  if (client == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a client");
  client->references = 1;
  client->call_timeout_ms = options->call_timeout_ms;
  client->in_flight_max = options->in_flight_bytes;
  client->positions_listener =
      (struct ps_positions_listener){.owner = client, .journal_replaced = ps_on_journal_replaced};
  client->positions.listener = &client->positions_listener;
  pserver_status status = name_client(client, options);
  if (status != PSERVER_OK) {
    free(client);
    return status;
  }
  if (pthread_mutex_init(&client->lock, NULL) != 0 || ps_condition_init(&client->idle) != 0) {
    free(client);
    return ps_fail(PSERVER_ERR_INTERNAL, "no room for a lock");
  }
  ps_session_init(client);
  ps_steps_init(client);
  status = ps_sender_init(client);
  if (status != PSERVER_OK) {
    ps_client_release(client);
    return status;
  }
  ps_keep_freed_memory(client->in_flight_max);
  *made = client;
  return PSERVER_OK;
}

static pserver_status join(struct client *client, int64_t ends_at_ms) {
  struct call call;
  int64_t left = ends_at_ms - ps_now_ms();
  pserver_status status = ps_call_begin_inner(&call, client, "pserver_connect", left > 0 ? left : 1);
  if (status != PSERVER_OK) return status;
  status = ps_join_job(&call);
  ps_call_end_inner(&call);
  return status == PSERVER_OK ? ps_start_lease(client) : status;
}

/** Ends a client without a handle; takes as long as its threads wait for the broker. */
static void finish(struct client *client) {
  ps_stop_lease(client);
  ps_disconnect(client);
  ps_client_release(client);
}

static void *finish_apart(void *closure) {
  finish(closure);
  nats_ReleaseThreadMemory();
  return NULL;
}

/** The same on another thread, so that an aborted call does not wait for the broker. */
static void finish_later(struct client *client) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, finish_apart, client) == 0) pthread_detach(thread);
  else finish(client);
}

static pserver_status connect_and_join(struct client *client, const pserver_options *options) {
  int64_t ends_at_ms = ps_now_ms() + options->connect_timeout_ms;
  pserver_status status = ps_connect(client, options, ends_at_ms);
  if (status != PSERVER_OK) {
    ps_client_release(client);
    return status;
  }
  status = join(client, ends_at_ms);
  if (status == PSERVER_OK) return status;
  struct failure failure = *ps_last_failure();
  if (status == PSERVER_ERR_ABORTED) finish_later(client);
  else finish(client);
  return ps_fail_with(&failure);
}

pserver_status pserver_connect(const pserver_options *options, pserver_client **handle) {
  struct client *client = NULL;
  pserver_status status = ps_check_process("pserver_connect");
  if (status == PSERVER_OK) status = check_options(options);
  if (status != PSERVER_OK) return status;
  if (handle == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_connect: client: expected a place; received NULL");
  }
  status = ps_claim_process("pserver_connect");
  if (status == PSERVER_OK) status = make_client(options, &client);
  if (status == PSERVER_OK) status = connect_and_join(client, options);
  if (status == PSERVER_OK) *handle = ps_client_publish(client);
  return status;
}

/** Waits for the calls under way; false if the closing thread's canceller ends that. */
static bool await_idle(struct client *client, const struct cancellable *cancellable, int64_t until_ms) {
  while (client->running > 0 && ps_now_ms() < until_ms && !cancellable->is_cancelled) {
    ps_condition_wait(&client->idle, &client->lock, until_ms);
  }
  return !cancellable->is_cancelled;
}

/** Ends calls, those that are left at the time by force; false if that was aborted. */
static bool end_calls(struct client *client, int64_t until_ms) {
  struct cancellable cancellable;
  ps_cancellable_enter(&cancellable, &client->lock, &client->idle);
  pthread_mutex_lock(&client->lock);
  client->is_closing = true;
  await_idle(client, &cancellable, until_ms);
  ps_client_fail(client, PSERVER_ERR_CLOSED, "the client is closed");
  /* Ended calls leave at once, but for one that publishes to a broker that takes nothing. */
  bool is_waited_for = await_idle(client, &cancellable, ps_now_ms() + ENDING_MS);
  pthread_mutex_unlock(&client->lock);
  ps_cancellable_leave(&cancellable);
  return is_waited_for;
}

pserver_status pserver_close(pserver_client *handle, int64_t timeout_ms) {
  struct client *client;
  pserver_status status = ps_client_acquire(handle, "pserver_close", &client);
  if (status != PSERVER_OK) return status;
  if (timeout_ms == PSERVER_TIMEOUT_DEFAULT) timeout_ms = CLOSE_MS;
  if (timeout_ms < 0 || !ps_client_unpublish(client)) {
    ps_client_release(client);
    return timeout_ms < 0
               ? ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_close: timeout_ms: expected 0 or more")
               : ps_fail(PSERVER_ERR_CLOSED, "pserver_close: the client is closed");
  }
  bool is_waited_for =
      end_calls(client, ps_now_ms() + (timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX));
  /* The registry's; this thread's own is given back when all is over. */
  ps_client_release(client);
  if (is_waited_for) {
    ps_stop_lease(client);
    is_waited_for = ps_leave_job(client) != PSERVER_ERR_ABORTED;
  }
  if (is_waited_for) {
    finish(client);
    return PSERVER_OK;
  }
  finish_later(client);
  return ps_fail(
      PSERVER_ERR_ABORTED,
      "pserver_close: aborted by the caller; the client is closed, its lease runs out by itself");
}
