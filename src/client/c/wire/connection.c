#include "wire/wire.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The connection to the broker. */

/* The connection to the broker: events of cnats, messages to the inbox, and publishing. */

/* Callbacks of cnats, on its threads. */

/** Notes an event for the I/O thread, which handles all events since the last time together. */
static void note_event(struct ps_connection *connection, bool *event) {
  pthread_mutex_lock(&connection->io->lock);
  *event = true;
  ps_io_post_locked(connection->io, &connection->events);
  pthread_mutex_unlock(&connection->io->lock);
}

static void on_disconnected(natsConnection *nats, void *closure) {
  (void)nats;
  struct ps_connection *connection = closure;
  pthread_mutex_lock(&connection->io->lock);
  connection->is_back = false;
  pthread_mutex_unlock(&connection->io->lock);
  note_event(connection, &connection->is_lost);
}

static void on_reconnected(natsConnection *nats, void *closure) {
  (void)nats;
  struct ps_connection *connection = closure;
  note_event(connection, &connection->is_back);
}

static void on_closed(natsConnection *nats, void *closure) {
  (void)nats;
  struct ps_connection *connection = closure;
  note_event(connection, &connection->is_closed);
  connection->listener->release(connection->listener->owner);
}

static bool append(struct ps_received *received, natsMsg *message) {
  if (received->count == received->capacity) {
    size_t capacity = received->capacity == 0 ? 64 : 2 * received->capacity;
    natsMsg **messages = realloc(received->messages, capacity * sizeof(natsMsg *));
    if (messages == NULL) return false;
    received->messages = messages;
    received->capacity = capacity;
  }
  received->messages[received->count++] = message;
  return true;
}

static void on_message(natsConnection *nats, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  (void)nats;
  (void)subscription;
  struct ps_connection *connection = closure;
  pthread_mutex_lock(&connection->io->lock);
  bool is_kept = append(&connection->received, message);
  if (is_kept) ps_io_post_locked(connection->io, &connection->events);
  pthread_mutex_unlock(&connection->io->lock);
  /* A message without memory counts as lost: the request is repeated. */
  if (!is_kept) natsMsg_Destroy(message);
}

static void on_unsubscribed(void *closure) {
  const struct ps_connection *connection = closure;
  connection->listener->release(connection->listener->owner);
}

/** What the broker denied: publishing to a subject, or, if it is "", subscribing to the inbox. */
struct denial {
  struct ps_io_work work;
  struct ps_connection *connection;
  char subject[PS_SUBJECT_SIZE];
};

static void handle_denial(void *context) {
  struct denial *denial = context;
  const struct ps_connection_listener *listener = denial->connection->listener;
  if (denial->subject[0] != '\0') {
    listener->denied(listener->owner, denial->subject);
  } else {
    listener->lost(listener->owner, PSERVER_ERR_DENIED,
                   "the broker refuses subscribing to the inbox: check the user's permissions");
  }
  free(denial);
}

/** Handles `Permissions Violation for Publish to "ps.…"`, and the same for the inbox. */
static void on_error(natsConnection *nats, natsSubscription *subscription, natsStatus error,
                     void *closure) {
  (void)subscription;
  (void)error;
  static const char refused[] = "Permissions Violation for Publish to \"";
  static const char unheard[] = "Permissions Violation for Subscription";
  const char *text = NULL;
  natsConnection_GetLastError(nats, &text);
  if (text == NULL) return;
  const char *found = strcasestr(text, refused);
  if (found == NULL && strcasestr(text, unheard) == NULL) return;
  struct denial *denial = calloc(1, sizeof *denial);
  if (denial == NULL) return;
  *denial = (struct denial){.work = {.run = handle_denial, .context = denial}, .connection = closure};
  if (found != NULL) {
    const char *start = found + sizeof refused - 1;
    snprintf(denial->subject, sizeof denial->subject, "%.*s", (int)strcspn(start, "\""), start);
  }
  ps_io_post(denial->connection->io, &denial->work);
}

/** Registers the handlers of events of this connection with cnats. */
static natsStatus set_handlers(natsOptions *options, struct ps_connection *connection) {
  natsStatus set = natsOptions_SetDisconnectedCB(options, on_disconnected, connection);
  if (set == NATS_OK) set = natsOptions_SetReconnectedCB(options, on_reconnected, connection);
  if (set == NATS_OK) set = natsOptions_SetClosedCB(options, on_closed, connection);
  if (set == NATS_OK) set = natsOptions_SetErrorHandler(options, on_error, connection);
  /* Write small messages at once, not a millisecond later together with others. */
  if (set == NATS_OK) set = natsOptions_SetSendAsap(options, true);
  return set;
}

/* The I/O thread. */

static void handle_messages(struct ps_connection *connection) {
  const struct ps_connection_listener *listener = connection->listener;
  struct ps_received *handled = &connection->handled;
  for (size_t i = 0; i < handled->count; i++) {
    connection->received_bytes += (uint64_t)natsMsg_GetDataLength(handled->messages[i]);
    listener->received(listener->owner, handled->messages[i]);
    natsMsg_Destroy(handled->messages[i]);
    handled->messages[i] = NULL;
  }
  handled->count = 0;
}

/**
 * Reads what a connection that was opened says of the broker. At other times such functions of cnats can block: it
 * holds its lock while it writes, and during each attempt to reconnect.
 */
static void take_connection(struct ps_connection *connection) {
  int64_t most = natsConnection_GetMaxPayload(connection->nats);
  __atomic_store_n(&connection->payload_bytes_max, most > 0 ? (size_t)most : SIZE_MAX, __ATOMIC_RELAXED);
  ps_link_open(connection);
}

/** Reports messages and events; the connection may have been lost and restored since the last time. */
static void handle_events(void *context) {
  struct ps_connection *connection = context;
  const struct ps_connection_listener *listener = connection->listener;
  pthread_mutex_lock(&connection->io->lock);
  bool is_lost = connection->is_lost;
  bool is_back = connection->is_back;
  bool is_closed = connection->is_closed;
  struct ps_received handled = connection->handled;
  connection->handled = connection->received;
  connection->received = handled;
  connection->is_lost = false;
  connection->is_back = false;
  pthread_mutex_unlock(&connection->io->lock);
  handle_messages(connection);
  if (is_lost) {
    connection->is_connected = false;
    ps_publisher_drop(&connection->publisher);
    listener->disconnected(listener->owner);
  }
  if (is_back) {
    connection->is_connected = true;
    connection->reconnects++;
    take_connection(connection);
    listener->reconnected(listener->owner);
  }
  if (is_closed) {
    listener->lost(listener->owner, PSERVER_ERR_NO_BROKER,
                   "the connection to the broker is lost for good");
  }
}

pserver_status ps_connection_init(struct ps_connection *connection, struct ps_io_thread *io,
                                  const struct ps_connection_listener *listener, const char *inbox_name) {
  *connection = (struct ps_connection){.io = io,
                                       .listener = listener,
                                       .inbox_name = inbox_name,
                                       .is_connected = true,
                                       .events = {.run = handle_events, .context = connection}};
  pserver_status status = ps_publisher_init(&connection->publisher, connection);
  return status == PSERVER_OK ? ps_link_init(connection) : status;
}

void ps_connection_release(struct ps_connection *connection) {
  ps_publisher_release(&connection->publisher);
  ps_link_release(connection);
  natsSubscription_Destroy(connection->inbox);
  natsConnection_Destroy(connection->nats);
  for (size_t i = 0; i < connection->received.count; i++) {
    natsMsg_Destroy(connection->received.messages[i]);
  }
  free(connection->received.messages);
  free(connection->handled.messages);
}

/* Other threads. */

/** Subscribes to the inbox, and registers the handler of its messages with cnats. */
static natsStatus subscribe_inbox(struct ps_connection *connection) {
  char subject[PS_INBOX_SIZE + 4];
  const struct ps_connection_listener *listener = connection->listener;
  snprintf(subject, sizeof subject, "%s.>", connection->inbox_name);
  natsStatus status =
      natsConnection_Subscribe(&connection->inbox, connection->nats, subject, on_message, connection);
  if (status == NATS_OK) {
    listener->retain(listener->owner);
    status = natsSubscription_SetOnCompleteCB(connection->inbox, on_unsubscribed, connection);
    if (status != NATS_OK) listener->release(listener->owner);
  }
  /* The client's requests bound the answers, so no message may be dropped. */
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(connection->inbox, -1, -1);
  return status;
}

void ps_disconnect(struct ps_connection *connection) {
  /* What a call that has ended has left unfinished is not waited for. */
  if (ps_is_publishing(connection)) ps_link_break(connection);
  natsConnection_Close(connection->nats);
  ps_publisher_stop(&connection->publisher);
  ps_link_stop(connection);
}

/* Connects a client. cnats cannot be told to stop connecting, and before 3.8 it does not stop by itself where a broker
 * greets and then says nothing. So this happens on another thread, which the caller can abandon. */

#define ADDRESS_SIZE 256

/** How much longer than an attempt should take one that can still say why it fails is waited for. */
#define OVERDUE_MS 1000

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

  /** Guards the rest. */
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
    bool is_refused = status == NATS_NO_SERVER;
    ps_fail(PSERVER_ERR_NO_BROKER,
            "no broker answers at %s (%s; tried again for the whole timeout, as broker and trainers may be started "
            "in any order): start nats-server with JetStream there, or give its address as url or in PSERVER_URL",
            address, is_refused ? "nothing accepts a connection" : natsStatus_GetText(status));
  }
  return ps_detail_text("servers", address);
}

/**
 * How often credentials are sent that the broker refuses. cnats before 3.8 leaves out a signature that begins with a
 * zero byte, as one in 256 does: the broker then refuses a good key, and takes it with another nonce.
 */
static int refusals_max(void) {
  return nats_GetVersionNumber() < 0x030800 ? 3 : 1;
}

static pserver_status connect_until(struct connecting *connecting) {
  int64_t pause_ms = PS_PAUSE_MS;
  int refusals = 0;
  while (true) {
    int64_t left = connecting->ends_at_ms - ps_now_ms();
    int64_t attempt_ms = connecting->attempt_timeout_ms;
    natsOptions_SetTimeout(connecting->made, left < attempt_ms ? (left > 1 ? left : 1) : attempt_ms);
    natsStatus status = natsConnection_Connect(&connecting->connection->nats, connecting->made);
    if (status == NATS_OK) return PSERVER_OK;
    pserver_status failed = connect_failure(status, connecting->address);
    bool is_tried_again =
        failed == PSERVER_ERR_DENIED ? ++refusals < refusals_max() : pserver_is_retryable(failed);
    if (!is_tried_again || !pause_between(connecting, &pause_ms)) return failed;
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
  natsStatus status = subscribe_inbox(connecting->connection);
  if (status == NATS_OK) status = await_inbox(connecting);
  if (status == NATS_OK) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_NO_BROKER, "subscribing to the inbox: %s", natsStatus_GetText(status));
}

static pserver_status connect_now(struct connecting *connecting) {
  struct ps_connection *connection = connecting->connection;
  pserver_status status = PSERVER_OK;
  /* The connection's own reference, until it reports that it is closed. */
  retain(connection);
  if (set_handlers(connecting->made, connection) != NATS_OK) {
    status = ps_no_memory("a connection");
  }
  if (status == PSERVER_OK) status = connect_until(connecting);
  if (status != PSERVER_OK) {
    release(connection);
    return status;
  }
  status = subscribe(connecting);
  if (status == PSERVER_OK) {
    take_connection(connection);
    return status;
  }
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

/** Why the other thread is abandoned. */
static pserver_status abandoned(bool is_cancelled, const char *address) {
  if (is_cancelled) return ps_fail(PSERVER_ERR_ABORTED, "pserver_connect: aborted by the caller");
  ps_fail(PSERVER_ERR_NO_BROKER, "what listens at %s greets as a broker does, and then says nothing", address);
  return ps_detail_text("servers", address);
}

/** Waits for the other thread. That thread owns `connecting` if it is not done by its time, or the caller cancels. */
static pserver_status await_connection(struct connecting *connecting) {
  char address[ADDRESS_SIZE];
  snprintf(address, sizeof address, "%s", connecting->address);
  int64_t until_ms = connecting->ends_at_ms + OVERDUE_MS;
  struct ps_cancellable cancellable;
  ps_cancellable_enter(&cancellable, &connecting->lock, &connecting->changed);
  pthread_mutex_lock(&connecting->lock);
  while (!connecting->is_done && !cancellable.is_cancelled && ps_now_ms() < until_ms) {
    ps_condition_wait(&connecting->changed, &connecting->lock, until_ms);
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
  if (!is_done) return abandoned(cancellable.is_cancelled, address);
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

static pserver_status prepare(struct ps_connection *connection, const char *name,
                              const pserver_options *options, int64_t ends_at_ms,
                              struct connecting **prepared) {
  struct connecting *made = calloc(1, sizeof *made);
  if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0 ||
      ps_condition_init(&made->changed) != 0) {
    free(made);
    return ps_no_memory("a connection");
  }
  retain(connection);
  made->connection = connection;
  made->attempt_timeout_ms = options->attempt_timeout_ms;
  made->ends_at_ms = ends_at_ms;
  ps_shown_address(options, made->address, sizeof made->address);
  pserver_status status = ps_make_nats_options(options, name, &made->made);
  if (status == PSERVER_OK) *prepared = made;
  else connecting_free(made);
  return status;
}

pserver_status ps_connect(struct ps_connection *connection, const char *name,
                          const pserver_options *options, int64_t ends_at_ms) {
  struct connecting *connecting = NULL;
  pserver_status status = prepare(connection, name, options, ends_at_ms, &connecting);
  if (status != PSERVER_OK) return status;
  return connect_on_thread(connecting);
}

size_t ps_payload_bytes_max(const struct ps_connection *connection) {
  return __atomic_load_n(&connection->payload_bytes_max, __ATOMIC_RELAXED);
}

size_t ps_data_bytes_max(const struct ps_connection *connection) {
  size_t most = ps_payload_bytes_max(connection);
  if (most == SIZE_MAX) return SIZE_MAX;
  return most > PS_HEADER_BYTES_MAX ? most - PS_HEADER_BYTES_MAX : 0;
}
