#ifndef FAKE_CONNECTION_H
#define FAKE_CONNECTION_H

#include "calls/client.h"

struct __natsMsg {
  char *subject;
  uint8_t *data;
  int bytes;
  bool is_nobody;
};

/** What stands for the connection, its options and its subscription: all that is needed of them is
 * whom to call. */
struct broker {
  /** The largest message it takes; 0 for 8 MiB. */
  int64_t max_payload;
  /** The text of its last error. */
  char *error;
  natsMsgHandler on_message;
  natsConnectionHandler on_disconnected;
  natsConnectionHandler on_reconnected;
  natsConnectionHandler on_closed;
  natsErrHandler on_error;
  natsOnCompleteCB on_complete;
  struct ps_connection *connection;
  struct ps_client *client;
};

extern struct broker broker;

/* There is one of each, and nothing in it. */
extern char fake_object[1];
#define CONNECTION ((natsConnection *)(void *)fake_object)
#define SUBSCRIPTION ((natsSubscription *)(void *)fake_object)
#define OPTIONS ((natsOptions *)(void *)fake_object)

/** Takes what the client publishes, `reply` "" if it wants none; what the broker does then is up to the
 * test. */
natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes);

/** A message to a subject, to be destroyed or delivered: its bytes are a copy of exactly their size. */
natsMsg *make_message(const char *subject, const void *data, size_t bytes);

/** Hands a message over to the client. No lock is held. */
void deliver_message(natsMsg *message);

/** Breaks the connection off, and makes it anew. */
void break_off(void);
void make_anew(void);

/** Puts the checksum of a message where it belongs. */
void seal_bytes(uint8_t *data, size_t bytes);

#endif
