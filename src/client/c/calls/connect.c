/* pserver_connect() and pserver_close(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls/new-client.h"
#include "wire/clock.h"
#include "wire/connecting.h"

/** Defaults of the options and of pserver_close(). */
#define CONNECT_MS 10000
#define ATTEMPT_MS 5000
#define CALL_MS 30000
#define CLOSE_MS 10000
#define IN_FLIGHT_BYTES ((size_t)16 * 1024 * 1024)
/** How long calls that were ended may take to return. */
#define ENDING_MS 10000
/** Time to give the lease back. */
#define LEAVE_MS 1000

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

/** Writes an id that is used once: host name, process id and a random part. */
static void unique_trainer(char id[PS_ID_SIZE]) {
  char host[PS_ID_SIZE];
  if (gethostname(host, sizeof host - 32) != 0) host[0] = '\0';
  host[sizeof host - 32] = '\0';
  for (char *c = host; *c != '\0'; c++) {
    bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!is_plain) *c = '-';
  }
  snprintf(id, PS_ID_SIZE, "%.31s-%d-%08" PRIx64, host, (int)getpid(), ps_random_bits() & UINT32_MAX);
}

static pserver_status name_client(const pserver_options *options, struct ps_identity *identity) {
  char made[PS_ID_SIZE];
  char token[PS_ID_SIZE];
  unique_trainer(made);
  const char *trainer = options->trainer == NULL ? made : options->trainer;
  pserver_status status = ps_escape_id(trainer, identity->id);
  if (status != PSERVER_OK) return status;
  snprintf(identity->trainer, sizeof identity->trainer, "%s", trainer);
  snprintf(identity->job, sizeof identity->job, "%s", options->job);
  snprintf(token, sizeof token, "%08" PRIx64, ps_random_bits() & UINT32_MAX);
  if (options->inbox_token != NULL) status = ps_escape_id(options->inbox_token, token);
  if (status != PSERVER_OK) return ps_fail_prefixed("inbox_token: ");
  snprintf(identity->inbox, sizeof identity->inbox, "_INBOX_%s.%s.%s", identity->job, identity->id,
           token);
  return PSERVER_OK;
}

static pserver_status make_client(const pserver_options *options, struct ps_client **made) {
  struct ps_identity identity;
  pserver_status status = name_client(options, &identity);
  return status == PSERVER_OK ? ps_client_new(&identity, options, made) : status;
}

/** Begins a call of the client itself. */
static pserver_status begin_inner(struct ps_call *call, struct ps_client *client, const char *what,
                                  int64_t timeout_ms) {
  pserver_status status = ps_call_enter(call, &client->calls, what, timeout_ms, PS_CALL_INNER);
  call->client = client;
  return status;
}

static pserver_status join(struct ps_client *client, int64_t ends_at_ms) {
  struct ps_call call;
  int64_t left = ends_at_ms - ps_now_ms();
  pserver_status status = begin_inner(&call, client, "pserver_connect", left > 0 ? left : 1);
  if (status != PSERVER_OK) return status;
  status = ps_join_job(&call, &client->session);
  ps_call_leave(&call);
  return status;
}

static void stop(struct ps_client *client, void *context) {
  (void)context;
  ps_session_stop(&client->session);
}

/** Ends the session and gives its lease back. */
static pserver_status leave(struct ps_client *client) {
  struct ps_call call;
  pserver_status status = begin_inner(&call, client, "leave", LEAVE_MS);
  if (status != PSERVER_OK) return status;
  call.is_last = true;
  ps_run_on_io_thread(&call, stop, NULL);
  status = ps_leave_job(&call, &client->session);
  ps_call_leave(&call);
  return status;
}

/** Disconnects and releases a client without a handle. May block while its threads wait for the broker. */
static void finish(struct ps_client *client) {
  ps_disconnect(&client->connection);
  ps_client_release(client);
}

static void *finish_apart(void *closure) {
  finish(closure);
  nats_ReleaseThreadMemory();
  return NULL;
}

/** Does the same on another thread, so that an aborted call does not wait for the broker. */
static void finish_later(struct ps_client *client) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, finish_apart, client) == 0) pthread_detach(thread);
  else finish(client);
}

static pserver_status connect_and_join(struct ps_client *client, const pserver_options *options) {
  int64_t ends_at_ms = ps_now_ms() + options->connect_timeout_ms;
  pserver_status status = ps_connect(&client->connection, &client->identity, options, ends_at_ms);
  if (status != PSERVER_OK) {
    ps_client_release(client);
    return status;
  }
  status = join(client, ends_at_ms);
  if (status == PSERVER_OK) return status;
  struct ps_error error = *ps_last_error();
  if (status == PSERVER_ERR_ABORTED) finish_later(client);
  else finish(client);
  return ps_fail_with(&error);
}

pserver_status pserver_connect(const pserver_options *options, pserver_client **handle) {
  struct ps_client *client = NULL;
  pserver_status status = ps_check_process("pserver_connect");
  if (status == PSERVER_OK) status = check_options(options);
  if (status != PSERVER_OK) return status;
  if (handle == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_connect: client: expected a pointer; received NULL");
  }
  status = ps_claim_process("pserver_connect");
  if (status == PSERVER_OK) status = make_client(options, &client);
  if (status == PSERVER_OK) status = connect_and_join(client, options);
  if (status == PSERVER_OK) *handle = ps_client_publish(client);
  return status;
}

/** Waits for the calls under way; false if the closing thread's canceller ends the wait. Lock held. */
static bool await_idle(struct ps_calls *calls, const struct ps_cancellable *cancellable, int64_t until_ms) {
  while (calls->running > 0 && ps_now_ms() < until_ms && !cancellable->is_cancelled) {
    ps_condition_wait(&calls->idle, &calls->io->lock, until_ms);
  }
  return !cancellable->is_cancelled;
}

/** Refuses new calls, waits for running ones, and fails those left at `until_ms`; false if aborted. */
static bool end_calls(struct ps_calls *calls, int64_t until_ms) {
  struct ps_cancellable cancellable;
  ps_cancellable_enter(&cancellable, &calls->io->lock, &calls->idle);
  pthread_mutex_lock(&calls->io->lock);
  calls->is_closing = true;
  await_idle(calls, &cancellable, until_ms);
  pthread_mutex_unlock(&calls->io->lock);
  ps_calls_fail(calls, PSERVER_ERR_CLOSED, "the client is closed");
  pthread_mutex_lock(&calls->io->lock);
  bool is_waited_for = await_idle(calls, &cancellable, ps_now_ms() + ENDING_MS);
  pthread_mutex_unlock(&calls->io->lock);
  ps_cancellable_leave(&cancellable);
  return is_waited_for;
}

pserver_status pserver_close(pserver_client *handle, int64_t timeout_ms) {
  struct ps_client *client;
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
      end_calls(&client->calls, ps_now_ms() + (timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX));
  /* Drops the reference of the registry; finish() drops that of this thread. */
  ps_client_release(client);
  if (is_waited_for) is_waited_for = leave(client) != PSERVER_ERR_ABORTED;
  if (is_waited_for) {
    finish(client);
    return PSERVER_OK;
  }
  finish_later(client);
  return ps_fail(
      PSERVER_ERR_ABORTED,
      "pserver_close: aborted by the caller; the client is closed, its lease will expire");
}
