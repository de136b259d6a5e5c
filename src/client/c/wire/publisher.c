#include "wire/wire.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Hands messages to cnats, whose functions write to the socket and wait for room in it. */

/** Fails with TOO_LARGE if the broker does not accept a message of so many bytes. */
static pserver_status check_payload(const struct ps_connection *connection, const char *subject,
                                    size_t bytes) {
  size_t most = ps_payload_bytes_max(connection);
  if (bytes <= INT_MAX && bytes <= most) return PSERVER_OK;
  ps_fail(PSERVER_ERR_TOO_LARGE, "message of %zu bytes: the broker takes at most %zu (max_payload)", bytes,
          most);
  ps_detail_numbers(most, bytes);
  return ps_detail_text("subject", subject);
}

/** Writes a message to the connection, which can block. On any thread, but on one at a time. */
static pserver_status write_message(natsConnection *nats, const char *subject, const char *reply,
                                    const void *bytes, size_t count) {
  natsStatus status = reply == NULL
                          ? natsConnection_Publish(nats, subject, bytes, (int)count)
                          : natsConnection_PublishRequest(nats, subject, reply, bytes, (int)count);
  if (status == NATS_OK) return PSERVER_OK;
  if (status == NATS_CONNECTION_CLOSED) {
    return ps_fail(PSERVER_ERR_CLOSED, "the connection to the broker is closed");
  }
  pserver_status code = status == NATS_INSUFFICIENT_BUFFER ? PSERVER_ERR_NO_BROKER : PSERVER_ERR_IO;
  return ps_fail(code, "publishing to %s: %s", subject, natsStatus_GetText(status));
}

/** Writes what is handed over, in order, on the thread of the publisher. */
static void *write_all(void *closure) {
  struct ps_publisher *publisher = closure;
  struct ps_connection *connection = publisher->connection;
  struct ps_io_thread *io = connection->io;
  pthread_mutex_lock(&io->lock);
  while (!publisher->is_stopping) {
    struct ps_publication *next = ps_queue_take(&publisher->waiting);
    if (next == NULL) {
      ps_condition_wait(&publisher->woken, &io->lock, PS_NEVER_MS);
      continue;
    }
    publisher->is_writing = true;
    pthread_mutex_unlock(&io->lock);
    next->status =
        write_message(connection->nats, next->subject, next->reply, next->bytes, next->count);
    pthread_mutex_lock(&io->lock);
    publisher->is_writing = false;
    ps_queue_append(&publisher->written, &next->place, next);
    ps_io_post_locked(io, &publisher->report);
    ps_link_wake_locked(connection);
  }
  pthread_mutex_unlock(&io->lock);
  nats_ReleaseThreadMemory();
  return NULL;
}

static struct ps_publication *take(struct ps_publisher *publisher, struct ps_queue *queue) {
  struct ps_io_thread *io = publisher->connection->io;
  pthread_mutex_lock(&io->lock);
  struct ps_publication *taken = ps_queue_take(queue);
  pthread_mutex_unlock(&io->lock);
  return taken;
}

/** Ends the publications that are written. On the I/O thread. */
static void report(void *context) {
  struct ps_publisher *publisher = context;
  struct ps_publication *written;
  while ((written = take(publisher, &publisher->written)) != NULL) written->done(written, written->status);
}

pserver_status ps_publisher_init(struct ps_publisher *publisher, struct ps_connection *connection) {
  *publisher = (struct ps_publisher){.connection = connection,
                                     .report = {.run = report, .context = publisher}};
  return ps_condition_init(&publisher->woken) == 0 ? PSERVER_OK : ps_no_memory("a connection");
}

void ps_publisher_drop(struct ps_publisher *publisher) {
  struct ps_publication *dropped;
  while ((dropped = take(publisher, &publisher->waiting)) != NULL) {
    dropped->done(dropped, ps_fail(PSERVER_ERR_NO_BROKER, "publishing to %s: the connection is lost",
                                   dropped->subject));
  }
}

void ps_publisher_stop(struct ps_publisher *publisher) {
  if (!publisher->has_thread) return;
  pthread_mutex_lock(&publisher->connection->io->lock);
  publisher->is_stopping = true;
  pthread_cond_signal(&publisher->woken);
  pthread_mutex_unlock(&publisher->connection->io->lock);
  pthread_join(publisher->thread, NULL);
  publisher->has_thread = false;
}

void ps_publisher_release(struct ps_publisher *publisher) {
  ps_publisher_stop(publisher);
  ps_publisher_drop(publisher);
  report(publisher);
  pthread_cond_destroy(&publisher->woken);
}

bool ps_is_publishing(const struct ps_connection *connection) {
  const struct ps_publisher *publisher = &connection->publisher;
  pthread_mutex_lock(&connection->io->lock);
  bool is = publisher->is_writing || publisher->waiting.count > 0;
  pthread_mutex_unlock(&connection->io->lock);
  return is;
}

/** Hands a message to the thread of the publisher, which is started for the first one. INTERNAL. */
static pserver_status hand_over(struct ps_publisher *publisher, struct ps_publication *publication) {
  struct ps_connection *connection = publisher->connection;
  if (!publisher->has_thread) {
    int error = pthread_create(&publisher->thread, NULL, write_all, publisher);
    if (error != 0) return ps_fail(PSERVER_ERR_INTERNAL, "no thread for publishing: error %d", error);
    publisher->has_thread = true;
  }
  pthread_mutex_lock(&connection->io->lock);
  ps_queue_append(&publisher->waiting, &publication->place, publication);
  pthread_cond_signal(&publisher->woken);
  pthread_mutex_unlock(&connection->io->lock);
  ps_link_watch(connection);
  return PSERVER_OK;
}

/** Fails with NO_BROKER or TOO_LARGE if a message cannot be sent now. */
static pserver_status check(const struct ps_connection *connection, const char *subject, size_t count) {
  /* While it reconnects, cnats holds its lock during each attempt, so do not call it. */
  if (!connection->is_connected) {
    return ps_fail(PSERVER_ERR_NO_BROKER, "publishing to %s: there is no connection", subject);
  }
  return check_payload(connection, subject, count);
}

bool ps_can_write_now(const struct ps_connection *connection, size_t count) {
  return !ps_is_publishing(connection) && ps_link_has_room(connection, count);
}

pserver_status ps_publish_later(struct ps_connection *connection, struct ps_publication *publication) {
  pserver_status status = check(connection, publication->subject, publication->count);
  if (status != PSERVER_OK) return status;
  ps_link_note_sent(connection, publication->count);
  return hand_over(&connection->publisher, publication);
}

/** A publication with copies of subject, reply subject and message, one after the other. */
struct copied {
  struct ps_publication publication;
  char bytes[];
};

static void free_copy(struct ps_publication *publication, pserver_status status) {
  /* What is lost with the connection is sent again by whoever waits for an answer. */
  (void)status;
  free(publication);
}

static struct ps_publication *copy_of(const char *subject, const char *reply, const void *bytes,
                                      size_t count) {
  size_t subject_bytes = strlen(subject) + 1;
  size_t reply_bytes = reply == NULL ? 0 : strlen(reply) + 1;
  struct copied *copied = malloc(sizeof *copied + subject_bytes + reply_bytes + count);
  if (copied == NULL) return NULL;
  char *copied_reply = copied->bytes + subject_bytes;
  char *copied_bytes = copied_reply + reply_bytes;
  memcpy(copied->bytes, subject, subject_bytes);
  if (reply != NULL) memcpy(copied_reply, reply, reply_bytes);
  memcpy(copied_bytes, bytes, count);
  copied->publication = (struct ps_publication){.subject = copied->bytes,
                                                .reply = reply == NULL ? NULL : copied_reply,
                                                .bytes = copied_bytes,
                                                .count = count,
                                                .done = free_copy};
  return &copied->publication;
}

pserver_status ps_publish(struct ps_connection *connection, const char *subject, const char *reply,
                          const void *bytes, size_t count) {
  pserver_status status = check(connection, subject, count);
  if (status != PSERVER_OK) return status;
  ps_link_note_sent(connection, count);
  if (ps_can_write_now(connection, count)) {
    return write_message(connection->nats, subject, reply, bytes, count);
  }
  struct ps_publication *copy = copy_of(subject, reply, bytes, count);
  if (copy == NULL) return ps_no_memory("a message of %zu bytes", count);
  status = hand_over(&connection->publisher, copy);
  if (status != PSERVER_OK) free(copy);
  return status;
}
