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
  struct ps_connection *connection;
  struct ps_client *client;
};

extern struct broker broker;

/* Each exists once and is empty. */
extern char fake_object[1];
#define CONNECTION ((natsConnection *)(void *)fake_object)
#define SUBSCRIPTION ((natsSubscription *)(void *)fake_object)
#define OPTIONS ((natsOptions *)(void *)fake_object)

/** Defined by the test: receives a message that the client publishes; `reply` "": without a reply subject. */
natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes);

/** Makes a message, to be destroyed or delivered. Its bytes are a copy of exactly their size, so that a
 * sanitizer finds reads beyond them. */
natsMsg *make_message(const char *subject, const void *data, size_t bytes);

/** Delivers a message to the client, with no lock held. */
void deliver_message(natsMsg *message);

/** Break the connection, and restore it. */
void break_off(void);
void make_anew(void);

/** Writes its checksum into a message. */
void seal_bytes(uint8_t *data, size_t bytes);

#endif
