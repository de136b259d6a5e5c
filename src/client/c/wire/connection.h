#ifndef WIRE_CONNECTION_H
#define WIRE_CONNECTION_H

#include <nats/nats.h>
#include <pserver_errors.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/io-thread.h"

/** Bytes of the inbox's name, and of the subjects below it, with the final zero. */
#define PS_INBOX_SIZE 192
#define PS_REPLY_SIZE (PS_INBOX_SIZE + 64)
/** Bytes of a subject with job, shard, escaped trainer and parameter, and the words between. */
#define PS_SUBJECT_SIZE 384
/** Bytes reserved in a message for all entries except tensor bytes and lists of parameters. */
#define PS_MESSAGE_HEAD_BYTES_MAX 65536

/** Notifications of the connection. On the I/O thread, except `retain` and `release`. */
struct ps_connection_listener {
  void *owner;
  /** A message to the inbox has come; it is valid until this returns. */
  void (*received)(void *owner, natsMsg *message);
  /** The connection is lost; nothing can be published until `reconnected`. */
  void (*disconnected)(void *owner);
  /** The connection is back. */
  void (*reconnected)(void *owner);
  /** The client can do nothing more: the connection is closed, or the inbox is denied. */
  void (*lost)(void *owner, pserver_status code, const char *text);
  /** The broker denied publishing to a subject. */
  void (*denied)(void *owner, const char *subject);
  /** Keeps the connection and its owner alive until `release`. Both on any thread. */
  void (*retain)(void *owner);
  void (*release)(void *owner);
};

/** Received messages, in order. */
struct ps_received {
  natsMsg **messages;
  size_t count;
  size_t capacity;
};

/**
 * The connection to the broker, and the inbox. Threads of cnats read the socket and pass messages and
 * events to the I/O thread, which also publishes.
 */
struct ps_connection {
  struct ps_io_thread *io;
  const struct ps_connection_listener *listener;
  /** The client subscribes to all subjects below this name. */
  const char *inbox_name;
  natsConnection *nats;
  natsSubscription *inbox;

  /** Guarded by the I/O thread's lock. */
  struct ps_received received;
  bool is_lost;
  bool is_back;
  bool is_closed;
  struct ps_io_work events;

  /** Used on the I/O thread: whether there is a connection. */
  bool is_connected;
  /** The largest message that the broker accepts, as last read from cnats; 0 before. Atomic. */
  size_t payload_bytes_max;
  /** Messages that are being handled. */
  struct ps_received handled;
};

/** Initializes a connection, to be opened by ps_connect(); `listener` and `inbox_name` must outlive it. */
void ps_connection_init(struct ps_connection *connection, struct ps_io_thread *io,
                        const struct ps_connection_listener *listener, const char *inbox_name);

/** Registers this connection's handlers of events, or of messages, with cnats. */
natsStatus ps_set_handlers(natsOptions *options, struct ps_connection *connection);
natsStatus ps_subscribe_inbox(struct ps_connection *connection);

/** Closes the connection and stops the I/O thread, which must not call this. */
void ps_disconnect(struct ps_connection *connection);

/** Returns the largest message that the broker accepts, or the last broker accepted. On the I/O thread. */
size_t ps_payload_bytes_max(struct ps_connection *connection);

/** Returns the value last read, without waiting. On any thread. */
size_t ps_last_payload_bytes_max(struct ps_connection *connection);

/** Returns how many tensor bytes a message can have: the broker's limit less that of the other entries. */
size_t ps_data_bytes_max(const struct ps_connection *connection);

/**
 * Publishes a message; `reply` NULL: without a reply subject. The bytes are copied or written to the
 * socket, which can block for up to 5 s while the broker accepts none. On the I/O thread. NO_BROKER while
 * there is no connection; IO if it broke meanwhile, so that part of the message may be sent; TOO_LARGE,
 * CLOSED.
 */
pserver_status ps_publish(struct ps_connection *connection, const char *subject, const char *reply,
                          const void *bytes, size_t count);

/** Frees what a connection holds, which is closed or was never opened. */
void ps_connection_release(struct ps_connection *connection);

#endif
