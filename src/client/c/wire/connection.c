/* The broker's connection: cnats on the client's I/O thread. */
#include "wire/connection.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "errors/details.h"
#include "errors/errors.h"

/** Bytes of a message kept free for its entries. */
#define HEADER_BYTES_MAX 65536
/** A message that is written by itself; smaller ones are written together. */
#define LARGE_BYTES 65536
/** How long a broker may take nothing before the connection is made anew. */
#define STALLED_MS 5000
/** What small messages may pile up to while the broker takes nothing; more is lost, and repeated later. */
#define UNWRITTEN_MAX (4 * 1024 * 1024)

/**
 * From cnats 3.9 on a socket is closed by whoever polls it, once it does so no more. NULL in earlier
 * ones, which close it themselves.
 */
extern void natsConnection_ProcessCloseEvent(natsSock *socket) __attribute__((weak));

/* Callbacks of cnats, on any thread; some come with its lock held. */

static natsStatus on_attach(void **data, void *loop, natsConnection *nats, natsSock socket) {
  struct ps_connection *connection = loop;
  *data = connection;
  pthread_mutex_lock(&connection->io->lock);
  connection->nats = nats;
  ps_io_watch_locked(connection->io, socket, false);
  pthread_mutex_unlock(&connection->io->lock);
  return NATS_OK;
}

static natsStatus on_detach(void *data) {
  (void)data;
  return NATS_OK;
}

static natsStatus watch_read(void *data, bool is_wanted) {
  struct ps_connection *connection = data;
  if (is_wanted) return NATS_OK;
  pthread_mutex_lock(&connection->io->lock);
  natsSock socket = connection->io->socket;
  ps_io_watch_locked(connection->io, -1, false);
  connection->has_lost_socket = true;
  connection->has_socket_again = false;
  ps_io_post_locked(connection->io, &connection->news);
  pthread_mutex_unlock(&connection->io->lock);
  if (natsConnection_ProcessCloseEvent != NULL) natsConnection_ProcessCloseEvent(&socket);
  return NATS_OK;
}

static natsStatus watch_write(void *data, bool is_wanted) {
  struct ps_connection *connection = data;
  pthread_mutex_lock(&connection->io->lock);
  ps_io_watch_locked(connection->io, connection->io->socket, is_wanted);
  pthread_mutex_unlock(&connection->io->lock);
  return NATS_OK;
}

static void on_reconnected(natsConnection *nats, void *closure) {
  (void)nats;
  struct ps_connection *connection = closure;
  pthread_mutex_lock(&connection->io->lock);
  connection->has_socket_again = true;
  ps_io_post_locked(connection->io, &connection->news);
  pthread_mutex_unlock(&connection->io->lock);
}

static void on_closed(natsConnection *nats, void *closure) {
  (void)nats;
  struct ps_connection *connection = closure;
  pthread_mutex_lock(&connection->io->lock);
  connection->is_closed = true;
  ps_io_post_locked(connection->io, &connection->news);
  pthread_mutex_unlock(&connection->io->lock);
  connection->listener->release(connection->listener->owner);
}

/** That the broker refused a subject, "" for the inbox. */
struct denial {
  struct ps_io_work work;
  struct ps_connection *connection;
  char subject[SUBJECT_SIZE];
};

static void tell_denial(void *context) {
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

/** The broker refused a subject: `Permissions Violation for Publish to "ps.…"`. */
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
  *denial = (struct denial){.work = {.run = tell_denial, .context = denial}, .connection = closure};
  if (found != NULL) {
    const char *start = found + sizeof refused - 1;
    snprintf(denial->subject, sizeof denial->subject, "%.*s", (int)strcspn(start, "\""), start);
  }
  ps_io_post(denial->connection->io, &denial->work);
}

natsStatus ps_set_handlers(natsOptions *options, struct ps_connection *connection) {
  natsStatus set = natsOptions_SetEventLoop(options, connection, on_attach, watch_read, watch_write,
                                            on_detach);
  /* What is published is asked to be written at once, without a thread that collects messages. */
  if (set == NATS_OK) set = natsOptions_SetSendAsap(options, true);
  if (set == NATS_OK) set = natsOptions_SetReconnectedCB(options, on_reconnected, connection);
  if (set == NATS_OK) set = natsOptions_SetClosedCB(options, on_closed, connection);
  if (set == NATS_OK) set = natsOptions_SetErrorHandler(options, on_error, connection);
  return set;
}

/* The I/O thread. */

/** Tells what has come of the socket; both can have happened since the last time. */
static void tell_news(void *context) {
  struct ps_connection *connection = context;
  const struct ps_connection_listener *listener = connection->listener;
  pthread_mutex_lock(&connection->io->lock);
  bool is_lost = connection->has_lost_socket;
  bool is_back = connection->has_socket_again;
  bool is_closed = connection->is_closed;
  connection->has_lost_socket = false;
  connection->has_socket_again = false;
  pthread_mutex_unlock(&connection->io->lock);
  if (is_lost && connection->is_connected) {
    connection->is_connected = false;
    connection->unwritten = 0;
    connection->has_small = false;
    ps_timer_set(&connection->io->timers, &connection->stalled, NEVER_MS);
    listener->disconnected(listener->owner);
  }
  if (is_back) {
    connection->is_connected = true;
    listener->reconnected(listener->owner);
  }
  if (is_closed) {
    listener->lost(listener->owner, PSERVER_ERR_NO_BROKER,
                   "the connection to the broker is lost for good");
  }
}

/** Has cnats find the connection broken. */
static void break_off(void *context) {
  struct ps_connection *connection = context;
  /* Nobody closes a socket that is watched as long as the lock is held. */
  pthread_mutex_lock(&connection->io->lock);
  if (connection->io->socket >= 0) shutdown(connection->io->socket, SHUT_RDWR);
  pthread_mutex_unlock(&connection->io->lock);
}

/** Writes what the socket takes; the rest is written when it takes more. */
static void write_out(struct ps_connection *connection) {
  natsConnection_ProcessWriteEvent(connection->nats);
  int left = natsConnection_Buffered(connection->nats);
  if (left < 0) left = 0;
  struct ps_timers *timers = &connection->io->timers;
  if (left == 0) ps_timer_set(timers, &connection->stalled, NEVER_MS);
  else if (left != connection->unwritten) {
    ps_timer_set(timers, &connection->stalled, ps_now_ms() + STALLED_MS);
  }
  connection->unwritten = left;
  connection->has_small = false;
}

static void take_messages(struct ps_connection *connection) {
  const struct ps_connection_listener *listener = connection->listener;
  pthread_mutex_lock(&connection->io->lock);
  natsSubscription *inbox = connection->inbox;
  pthread_mutex_unlock(&connection->io->lock);
  if (inbox == NULL) return;
  uint64_t count = 0;
  /* Asking for a message where there is none would make an error. */
  while (natsSubscription_QueuedMsgs(inbox, &count) == NATS_OK && count > 0 &&
         natsSubscription_NextMsg(&connection->message, inbox, 0) == NATS_OK) {
    listener->received(listener->owner, connection->message);
    natsMsg_Destroy(connection->message);
    connection->message = NULL;
  }
}

static void on_ready(void *context, bool is_readable, bool is_writable) {
  struct ps_connection *connection = context;
  if (is_writable) {
    write_out(connection);
    if (ps_is_written(connection)) connection->listener->written(connection->listener->owner);
  }
  if (is_readable) {
    natsConnection_ProcessReadEvent(connection->nats);
    take_messages(connection);
  }
}

static void flush(void *context) {
  struct ps_connection *connection = context;
  if (connection->has_small) write_out(connection);
}

void ps_connection_init(struct ps_connection *connection, struct ps_io_thread *io,
                        const struct ps_connection_listener *listener, const char *inbox_name) {
  *connection = (struct ps_connection){.io = io,
                                       .listener = listener,
                                       .inbox_name = inbox_name,
                                       .is_connected = true,
                                       .news = {.run = tell_news, .context = connection},
                                       .stalled = {.due = break_off, .context = connection}};
  io->handler = (struct ps_io_handler){.context = connection, .ready = on_ready, .flush = flush};
}

/** Closes the socket where it is read, so that nobody reads another that gets its number. */
static void close_connection(void *context) {
  struct ps_connection *connection = context;
  if (connection->is_connected) write_out(connection);
  natsConnection_Close(connection->nats);
}

/* Other threads. */

natsStatus ps_subscribe_inbox(struct ps_connection *connection) {
  char subject[INBOX_SIZE + 4];
  natsSubscription *inbox = NULL;
  snprintf(subject, sizeof subject, "%s.>", connection->inbox_name);
  natsStatus status = natsConnection_SubscribeSync(&inbox, connection->nats, subject);
  /* Answers are bounded by what was asked for and sent, so no message may be dropped. */
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(inbox, -1, -1);
  pthread_mutex_lock(&connection->io->lock);
  connection->inbox = inbox;
  pthread_mutex_unlock(&connection->io->lock);
  return status;
}

void ps_disconnect(struct ps_connection *connection) {
  struct ps_io_work closing = {.run = close_connection, .context = connection};
  ps_io_post(connection->io, &closing);
  ps_io_stop(connection->io);
  natsSubscription_Destroy(connection->inbox);
  natsConnection_Destroy(connection->nats);
}

size_t ps_data_bytes_max(const struct ps_connection *connection) {
  int64_t most = natsConnection_GetMaxPayload(connection->nats);
  if (most <= 0) return SIZE_MAX;
  return most > HEADER_BYTES_MAX ? (size_t)(most - HEADER_BYTES_MAX) : 0;
}

/* Publishing, on the I/O thread. */

/** TOO_LARGE if the broker takes no message of so many bytes. */
static pserver_status check_payload(const struct ps_connection *connection, const char *subject,
                                    size_t bytes) {
  int64_t most = natsConnection_GetMaxPayload(connection->nats);
  if (bytes <= INT_MAX && (most <= 0 || bytes <= (uint64_t)most)) return PSERVER_OK;
  ps_fail(PSERVER_ERR_TOO_LARGE, "message of %zu bytes: the broker takes at most %lld (max_payload)",
          bytes, (long long)most);
  ps_detail_signed("expected", most);
  ps_detail_whole("received", bytes);
  return ps_detail_text("subject", subject);
}

bool ps_is_written(const struct ps_connection *connection) { return connection->unwritten == 0; }

pserver_status ps_publish(struct ps_connection *connection, const char *subject, const char *reply,
                          const void *bytes, size_t count) {
  /* While cnats reconnects it holds its lock for as long as an attempt takes. */
  if (!connection->is_connected || connection->unwritten > UNWRITTEN_MAX) {
    return ps_fail(PSERVER_ERR_NO_BROKER, "publishing to %s: the connection takes nothing", subject);
  }
  pserver_status checked = check_payload(connection, subject, count);
  if (checked != PSERVER_OK) return checked;
  natsStatus status =
      reply == NULL ? natsConnection_Publish(connection->nats, subject, bytes, (int)count)
                    : natsConnection_PublishRequest(connection->nats, subject, reply, bytes, (int)count);
  if (status == NATS_OK) {
    if (connection->unwritten > 0) return PSERVER_OK;
    if (count < LARGE_BYTES) connection->has_small = true;
    else write_out(connection);
    return PSERVER_OK;
  }
  if (status == NATS_CONNECTION_CLOSED) {
    return ps_fail(PSERVER_ERR_CLOSED, "the connection to the broker is closed");
  }
  pserver_status code = status == NATS_INSUFFICIENT_BUFFER ? PSERVER_ERR_NO_BROKER : PSERVER_ERR_IO;
  return ps_fail(code, "publishing to %s: %s", subject, natsStatus_GetText(status));
}
