#ifndef WIRE_CONNECTION_H
#define WIRE_CONNECTION_H

#include <nats/nats.h>
#include <pserver_errors.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/io-thread.h"

/** Bytes of an inbox's name, and of those of the subjects below it. */
#define PS_INBOX_SIZE 192
#define PS_REPLY_SIZE (PS_INBOX_SIZE + 64)
/** Bytes of a subject: job, shard, escaped trainer and parameter, and the words between. */
#define PS_SUBJECT_SIZE 384
/** Bytes that are kept free for the entries of a message besides those that are many or large. */
#define PS_MESSAGE_HEAD_BYTES_MAX 65536

/** What the connection tells; on the I/O thread, but for `retain` and `release`. */
struct ps_connection_listener {
  void *owner;
  /** A message to the inbox; it is valid until this returns. */
  void (*received)(void *owner, natsMsg *message);
  /** The connection is lost: what is published from now on does not arrive. */
  void (*disconnected)(void *owner);
  /** The connection is back. */
  void (*reconnected)(void *owner);
  /** The client can do nothing more: there is no connection any more, or no inbox. */
  void (*lost)(void *owner, pserver_status code, const char *text);
  /** The broker refused what was published to a subject. */
  void (*denied)(void *owner, const char *subject);
  /** Keeps the connection and its owner until `release`; on any thread. */
  void (*retain)(void *owner);
  void (*release)(void *owner);
};

/** Messages that have come, in their order. */
struct ps_received {
  natsMsg **messages;
  size_t count;
  size_t capacity;
};

/**
 * The connection to the broker, and the inbox. Threads of cnats read the socket; what they have read, and
 * the events of the connection, they post to the I/O thread. That publishes.
 */
struct ps_connection {
  struct ps_io_thread *io;
  const struct ps_connection_listener *listener;
  /** The subscription is to all below it. */
  const char *inbox_name;
  natsConnection *nats;
  natsSubscription *inbox;

  /** Guarded by the I/O thread's lock. */
  struct ps_received received;
  bool is_lost;
  bool is_back;
  bool is_closed;
  struct ps_io_work events;

  /** On the I/O thread: whether what is published arrives. */
  bool is_connected;
  /** The largest message that the broker takes, as of the last look; 0 before. Atomic. */
  size_t payload_bytes_max;
  /** Messages that are being handled. */
  struct ps_received handled;
};

/** Prepares a connection that is to be opened; `listener` and `inbox_name` live as long as it. */
void ps_connection_init(struct ps_connection *connection, struct ps_io_thread *io,
                        const struct ps_connection_listener *listener, const char *inbox_name);

/** Has the connection's events and messages come to this. */
natsStatus ps_set_handlers(natsOptions *options, struct ps_connection *connection);
natsStatus ps_subscribe_inbox(struct ps_connection *connection);

/** Closes the connection and stops the I/O thread, which must not call this. */
void ps_disconnect(struct ps_connection *connection);

/** The largest message that the broker takes; without a connection, that the last one took. On the I/O thread. */
size_t ps_payload_bytes_max(struct ps_connection *connection);

/** The same as of the last look at it, which waits for nothing. On any thread. */
size_t ps_last_payload_bytes_max(struct ps_connection *connection);

/** Bytes of index and elements that a message has room for: what the broker takes, less the entries. */
size_t ps_data_bytes_max(const struct ps_connection *connection);

/**
 * Hands a message to the connection, `reply` NULL for none; it is copied, or written to the socket, which
 * can take as long as the broker takes nothing, at most 5 s. NO_BROKER while there is no connection, IO if it broke
 * meanwhile, so that part of the message may have gone; TOO_LARGE, CLOSED. On the I/O thread.
 */
pserver_status ps_publish(struct ps_connection *connection, const char *subject, const char *reply,
                          const void *bytes, size_t count);

/** Frees what it holds; it is closed, or was never opened. */
void ps_connection_release(struct ps_connection *connection);

#endif
