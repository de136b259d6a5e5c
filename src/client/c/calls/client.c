/* Clients and their handles: a handle is a number that is looked up, so that a closed or invalid one is
 * an error. */
#include "calls/client.h"

#include <stdlib.h>
#include <unistd.h>

#include "calls/call.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct client *clients;
static uint64_t clients_made;
/** The process that has connected first; 0 before. */
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

static void destroy(struct client *client) {
  ps_session_core_release(&client->session.core);
  ps_sender_free(&client->sender);
  ps_parameters_free(&client->parameters);
  ps_release_open_inits(&client->open_inits);
  pthread_cond_destroy(&client->idle);
  pthread_mutex_destroy(&client->lock);
  free(client);
}

void ps_client_retain(struct client *client) {
  pthread_mutex_lock(&registry);
  client->references++;
  pthread_mutex_unlock(&registry);
}

void ps_client_release(struct client *client) {
  pthread_mutex_lock(&registry);
  bool is_last = --client->references == 0;
  pthread_mutex_unlock(&registry);
  if (is_last) destroy(client);
}

pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct client **client) {
  pserver_status status = ps_check_process(what);
  if (status != PSERVER_OK) return status;
  if (handle == NULL) return ps_fail(PSERVER_ERR_CLOSED, "%s: expected a client; received NULL", what);
  pthread_mutex_lock(&registry);
  struct client *found = clients;
  while (found != NULL && (uintptr_t)handle != (uintptr_t)found->number) found = found->next;
  if (found != NULL) found->references++;
  pthread_mutex_unlock(&registry);
  *client = found;
  if (found != NULL) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_CLOSED, "%s: the client is closed, or is none", what);
}

void ps_client_fail(struct client *client, pserver_status code, const char *text) {
  if (client->failure.code != PSERVER_OK) return;
  ps_set_failure(&client->failure, code, "%s", text);
  ps_wake_all(client);
}

void ps_await_position(struct client *client, uint64_t shard, struct position position) {
  if (shard < PS_SHARDS_MAX) ps_positions_await(&client->positions, (unsigned)shard, position);
}

void ps_note_position(struct client *client, uint64_t shard, struct position position) {
  if (shard < PS_SHARDS_MAX) ps_positions_note(&client->positions, (unsigned)shard, position);
}

struct position ps_position_of(const struct client *client, uint64_t shard) {
  return ps_positions_get(&client->positions, (unsigned)shard);
}

void ps_note_replaced(struct client *client, unsigned shard, const struct message *message) {
  struct position expected = ps_expected_position(message);
  if (expected.generation == 0) return;
  ps_note_position(client, shard, (struct position){expected.generation, 0});
}

pserver_client *ps_client_publish(struct client *client) {
  pthread_mutex_lock(&registry);
  client->number = ++clients_made;
  client->next = clients;
  clients = client;
  pthread_mutex_unlock(&registry);
  return (pserver_client *)(uintptr_t)client->number;
}

bool ps_client_unpublish(struct client *client) {
  pthread_mutex_lock(&registry);
  struct client **link = &clients;
  while (*link != NULL && *link != client) link = &(*link)->next;
  bool is_ours = *link != NULL;
  if (is_ours) *link = client->next;
  pthread_mutex_unlock(&registry);
  return is_ours;
}
