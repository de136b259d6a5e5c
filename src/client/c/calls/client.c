/* Clients and their handles. A handle is a number that is looked up, so that a closed or invalid one is an
 * error and not a crash. */
#include "calls/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "errors/details.h"

/** The longest timeout, a year, so that times do not overflow. */
#define TIMEOUT_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct ps_client *clients;
static uint64_t clients_made;
/** The process that has connected; 0 before. */
static pid_t owner;

static pserver_status forked(const char *what, pid_t from) {
  return ps_fail(PSERVER_ERR_CLOSED,
                 "%s: this process was forked from %d, which had connected: connect after the fork, not "
                 "before",
                 what, (int)from);
}

pserver_status ps_check_process(const char *what) {
  pid_t owned = __atomic_load_n(&owner, __ATOMIC_SEQ_CST);
  return owned == 0 || owned == getpid() ? PSERVER_OK : forked(what, owned);
}

pserver_status ps_claim_process(const char *what) {
  pid_t expected = 0;
  __atomic_compare_exchange_n(&owner, &expected, getpid(), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return ps_check_process(what);
}

static void destroy(struct ps_client *client) {
  ps_io_stop(&client->io);
  ps_session_core_release(&client->session.core);
  ps_sender_free(&client->sender);
  ps_requests_release(&client->requests);
  ps_parameters_release(&client->parameters);
  ps_release_open_inits(&client->open_inits);
  ps_calls_release(&client->calls);
  ps_connection_release(&client->connection);
  ps_io_release(&client->io);
  free(client);
}

void ps_client_retain(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  client->references++;
  pthread_mutex_unlock(&registry);
}

void ps_client_release(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  bool is_last = --client->references == 0;
  pthread_mutex_unlock(&registry);
  if (is_last) destroy(client);
}

pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct ps_client **client) {
  pserver_status status = ps_check_process(what);
  if (status != PSERVER_OK) return status;
  if (handle == NULL) return ps_fail(PSERVER_ERR_CLOSED, "%s: expected a client; received NULL", what);
  pthread_mutex_lock(&registry);
  struct ps_client *found = clients;
  while (found != NULL && (uintptr_t)handle != (uintptr_t)found->number) found = found->next;
  if (found != NULL) found->references++;
  pthread_mutex_unlock(&registry);
  *client = found;
  if (found != NULL) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_CLOSED, "%s: the client is closed, or was never opened", what);
}

pserver_client *ps_client_publish(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  client->number = ++clients_made;
  client->next = clients;
  clients = client;
  pthread_mutex_unlock(&registry);
  return (pserver_client *)(uintptr_t)client->number;
}

bool ps_client_unpublish(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  struct ps_client **link = &clients;
  while (*link != NULL && *link != client) link = &(*link)->next;
  bool is_ours = *link != NULL;
  if (is_ours) *link = client->next;
  pthread_mutex_unlock(&registry);
  return is_ours;
}

pserver_status ps_call_begin(struct ps_call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms) {
  struct ps_client *client;
  pserver_status status = ps_client_acquire(handle, what, &client);
  if (status != PSERVER_OK) return status;
  if (timeout_ms == PSERVER_TIMEOUT_DEFAULT) {
    timeout_ms = default_ms == 0 ? client->call_timeout_ms : default_ms;
  }
  if (timeout_ms <= 0 || timeout_ms > TIMEOUT_MS_MAX) {
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: timeout_ms: expected more than 0; received %" PRId64, what,
            timeout_ms);
    ps_detail_text("expected", "more than 0");
    status = ps_detail_signed("received", timeout_ms);
  } else {
    status = ps_call_enter(call, &client->calls, what, timeout_ms, PS_CALL_USUAL);
  }
  if (status == PSERVER_OK) call->client = client;
  else ps_client_release(client);
  return status;
}

pserver_status ps_call_end(struct ps_call *call, pserver_status status) {
  ps_call_leave(call);
  ps_client_release(call->client);
  return status;
}
