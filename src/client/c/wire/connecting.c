/* Connects a client. cnats cannot be told to stop connecting, so for a thread that uses a canceller this
 * happens on another thread, which the caller can abandon. */
#include "wire/connecting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/canceller.h"
#include "errors/details.h"
#include "errors/errors.h"
#include "wire/clock.h"
#include "wire/settings.h"

#define ADDRESS_SIZE 256

/**
 * The state of one attempt to connect. It owns everything that it uses, because the caller may abandon it.
 */
struct connecting {
  struct ps_connection *connection;
  natsOptions *made;
  char address[ADDRESS_SIZE];
  int64_t attempt_timeout_ms;
  int64_t ends_at_ms;
  /** The result; code OK for a connection. */
  struct ps_error error;

  /** Guards the rest; used only with another thread. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_done;
  /** Whether the caller has left: the other thread closes the connection and frees this. */
  bool is_abandoned;
};

/** Keeps the connection's owner alive until release(). */
static void retain(const struct ps_connection *connection) {
  connection->listener->retain(connection->listener->owner);
}

static void release(const struct ps_connection *connection) {
  connection->listener->release(connection->listener->owner);
}

static bool is_abandoned(struct connecting *connecting) {
  pthread_mutex_lock(&connecting->lock);
  bool is = connecting->is_abandoned;
  pthread_mutex_unlock(&connecting->lock);
  return is;
}

/** Waits before the next attempt; false if there is no time for one. */
static bool pause_between(struct connecting *connecting, int64_t *pause_ms) {
  int64_t delay_ms = ps_varied_ms(*pause_ms);
  if (ps_now_ms() + delay_ms >= connecting->ends_at_ms || is_abandoned(connecting)) return false;
  *pause_ms = ps_doubled_ms(*pause_ms, PS_PAUSE_MS_MAX);
  nats_Sleep(delay_ms);
  return true;
}

static pserver_status connect_failure(natsStatus status, const char *address) {
  const char *detail = nats_GetLastError(NULL);
  if (status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED) {
    ps_fail(PSERVER_ERR_DENIED, "the broker at %s refuses the credentials: %s", address,
            detail == NULL ? natsStatus_GetText(status) : detail);
  } else if (status == NATS_SECURE_CONNECTION_WANTED) {
    ps_fail(PSERVER_ERR_NO_TLS,
            "the broker at %s offers no TLS, which tls:// or a certificate file asks for: nothing "
            "was sent to it; give nats:// if the connection may be read by others",
            address);
  } else if (status == NATS_SSL_ERROR && detail != NULL && strstr(detail, ":depth=") != NULL) {
    /* cnats reports the place in the chain only if it has refused the certificate. */
    ps_fail(PSERVER_ERR_NO_TLS, "the certificate of the broker at %s is refused: %s", address, detail);
  } else {
    ps_fail(PSERVER_ERR_NO_BROKER,
            "no broker answers at %s (%s): start nats-server with JetStream there, or give its "
            "address as url or in PSERVER_URL",
            address, natsStatus_GetText(status));
  }
  return ps_detail_text("servers", address);
}

static pserver_status connect_until(struct connecting *connecting) {
  int64_t pause_ms = PS_PAUSE_MS;
  while (true) {
    int64_t left = connecting->ends_at_ms - ps_now_ms();
    int64_t attempt_ms = connecting->attempt_timeout_ms;
    natsOptions_SetTimeout(connecting->made, left < attempt_ms ? (left > 1 ? left : 1) : attempt_ms);
    natsStatus status = natsConnection_Connect(&connecting->connection->nats, connecting->made);
    if (status == NATS_OK) return PSERVER_OK;
    pserver_status failed = connect_failure(status, connecting->address);
    if (!pserver_is_retryable(failed) || !pause_between(connecting, &pause_ms)) return failed;
  }
}

/** Waits until the broker has the subscription to the inbox, so that no answer is lost. */
static natsStatus await_inbox(struct connecting *connecting) {
  int64_t pause_ms = PS_PAUSE_MS;
  while (true) {
    int64_t left = connecting->ends_at_ms - ps_now_ms();
    natsStatus status = natsConnection_FlushTimeout(connecting->connection->nats, left > 1 ? left : 1);
    bool is_final = status == NATS_OK || status == NATS_CONNECTION_CLOSED;
    if (is_final || !pause_between(connecting, &pause_ms)) return status;
  }
}

static pserver_status subscribe(struct connecting *connecting) {
  natsStatus status = ps_subscribe_inbox(connecting->connection);
  if (status == NATS_OK) status = await_inbox(connecting);
  if (status == NATS_OK) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_NO_BROKER, "subscribing to the inbox: %s", natsStatus_GetText(status));
}

static pserver_status connect_now(struct connecting *connecting) {
  struct ps_connection *connection = connecting->connection;
  pserver_status status = PSERVER_OK;
  /* The connection's own reference, until it reports that it is closed. */
  retain(connection);
  if (ps_set_handlers(connecting->made, connection) != NATS_OK) {
    status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for a connection");
  }
  if (status == PSERVER_OK) status = connect_until(connecting);
  if (status != PSERVER_OK) {
    release(connection);
    return status;
  }
  status = subscribe(connecting);
  if (status == PSERVER_OK) return status;
  struct ps_error error = *ps_last_error();
  ps_disconnect(connection);
  return ps_fail_with(&error);
}

static void connecting_free(struct connecting *connecting) {
  release(connecting->connection);
  natsOptions_Destroy(connecting->made);
  pthread_cond_destroy(&connecting->changed);
  pthread_mutex_destroy(&connecting->lock);
  free(connecting);
}

static void *connect_apart(void *closure) {
  struct connecting *connecting = closure;
  pserver_status status = connect_now(connecting);
  pthread_mutex_lock(&connecting->lock);
  if (status != PSERVER_OK) connecting->error = *ps_last_error();
  connecting->is_done = true;
  bool is_left = connecting->is_abandoned;
  pthread_cond_signal(&connecting->changed);
  pthread_mutex_unlock(&connecting->lock);
  if (is_left) {
    if (status == PSERVER_OK) ps_disconnect(connecting->connection);
    connecting_free(connecting);
  }
  nats_ReleaseThreadMemory();
  return NULL;
}

/** Waits for the other thread; with ABORTED that thread owns `connecting`. */
static pserver_status await_connection(struct connecting *connecting) {
  struct ps_cancellable cancellable;
  ps_cancellable_enter(&cancellable, &connecting->lock, &connecting->changed);
  pthread_mutex_lock(&connecting->lock);
  while (!connecting->is_done && !cancellable.is_cancelled) {
    ps_condition_wait(&connecting->changed, &connecting->lock, PS_NEVER_MS);
  }
  bool is_done = connecting->is_done;
  pthread_mutex_unlock(&connecting->lock);
  ps_cancellable_leave(&cancellable);
  if (!is_done) {
    pthread_mutex_lock(&connecting->lock);
    is_done = connecting->is_done;
    connecting->is_abandoned = !is_done;
    pthread_mutex_unlock(&connecting->lock);
  }
  if (!is_done) return ps_fail(PSERVER_ERR_ABORTED, "pserver_connect: aborted by the caller");
  pserver_status status =
      connecting->error.code == PSERVER_OK ? PSERVER_OK : ps_fail_with(&connecting->error);
  connecting_free(connecting);
  return status;
}

static pserver_status connect_on_thread(struct connecting *connecting) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, connect_apart, connecting);
  if (error != 0) {
    connecting_free(connecting);
    return ps_fail(PSERVER_ERR_INTERNAL, "no thread for connecting: error %d", error);
  }
  pthread_detach(thread);
  return await_connection(connecting);
}

static pserver_status prepare(struct ps_connection *connection, const struct ps_identity *identity,
                              const pserver_options *options, int64_t ends_at_ms,
                              struct connecting **prepared) {
  char name[PS_JOB_BYTES_MAX + PS_ID_SIZE + 16];
  struct connecting *made = calloc(1, sizeof *made);
  if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0 ||
      ps_condition_init(&made->changed) != 0) {
    free(made);
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a connection");
  }
  retain(connection);
  made->connection = connection;
  made->attempt_timeout_ms = options->attempt_timeout_ms;
  made->ends_at_ms = ends_at_ms;
  ps_shown_address(options, made->address, sizeof made->address);
  snprintf(name, sizeof name, "pserver %s %s", identity->job, identity->trainer);
  pserver_status status = ps_make_nats_options(options, name, &made->made);
  if (status == PSERVER_OK) *prepared = made;
  else connecting_free(made);
  return status;
}

pserver_status ps_connect(struct ps_connection *connection, const struct ps_identity *identity,
                          const pserver_options *options, int64_t ends_at_ms) {
  struct connecting *connecting = NULL;
  pserver_status status = prepare(connection, identity, options, ends_at_ms, &connecting);
  if (status != PSERVER_OK) return status;
  if (ps_uses_canceller()) return connect_on_thread(connecting);
  status = connect_now(connecting);
  struct ps_error error = *ps_last_error();
  connecting_free(connecting);
  return status == PSERVER_OK ? status : ps_fail_with(&error);
}
