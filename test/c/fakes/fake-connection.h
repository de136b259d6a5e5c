#ifndef FAKE_CONNECTION_H
#define FAKE_CONNECTION_H

#include "client/client.h"

struct __natsMsg {
  char *subject;
  uint8_t *data;
  int bytes;
  bool is_nobody;
};

/** Replaces connection, options and subscription of cnats: only their callbacks are needed. */
struct broker {
  /** The largest message that it accepts; 0: 8 MiB. */
  int64_t max_payload;
  /** The text of its last error. */
  char *error;
  natsMsgHandler on_message;
  natsConnectionHandler on_disconnected;
  natsConnectionHandler on_reconnected;
  natsConnectionHandler on_closed;
  natsErrHandler on_error;
  natsOnCompleteCB on_complete;
  /** The connection that the client opens first, and the one for what must not wait behind records. */
  struct ps_connection *connection;
  struct ps_connection *control;
  struct ps_client *client;
  /** Whether it leaves PINGs without an answer, as on a slow link with much before them. */
  bool holds_pings;
};

extern struct broker broker;

/* Objects of cnats, which are empty: one of each, but two connections. */
extern char fake_objects[2];
#define CONNECTION ((natsConnection *)(void *)fake_objects)
#define CONTROL_CONNECTION ((natsConnection *)(void *)(fake_objects + 1))
#define SUBSCRIPTION ((natsSubscription *)(void *)fake_objects)
#define OPTIONS ((natsOptions *)(void *)fake_objects)

/** Defined by the test: receives a message that the client publishes; `reply` "": without a reply subject. */
natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes);

/** Makes a message, to be destroyed or delivered. Its bytes are a copy of exactly their size, so that a
 * sanitizer finds reads beyond them. */
natsMsg *make_message(const char *subject, const void *data, size_t bytes);

/** Delivers a message to the client, with no lock held. */
void deliver_message(natsMsg *message);

/** Break both connections, and restore them. */
void break_off(void);
void make_anew(void);

/** Answers the PINGs that were held, and those that follow. */
void answer_pings(void);

/** Tells the client that bytes have moved on the connection for records and values. */
void move_bytes(void);

/** Writes its checksum into a message. */
void seal_bytes(uint8_t *data, size_t bytes);

#endif
