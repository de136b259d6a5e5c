#ifndef FAKE_CONNECTION_H
#define FAKE_CONNECTION_H

#include "fake-broker.h"

/** Inboxes of questions that are kept; what comes beyond gets no answer. */
#define QUESTIONS_MAX 64

struct __natsMsg {
  char *subject;
  uint8_t *data;
  int bytes;
  bool is_nobody;
};

/** What stands for the connection, its options and its subscription: all that is needed of them is
 * whom to call. */
struct broker {
  const uint8_t *at;
  const uint8_t *end;
  const uint8_t *join_reply;
  size_t join_bytes;
  /** Inboxes of questions without an answer, oldest first. */
  char *questions[QUESTIONS_MAX];
  size_t question_count;
  natsStatus next_publication;
  bool is_disconnected;
  char *error;
  natsMsgHandler on_message;
  natsConnectionHandler on_disconnected;
  natsConnectionHandler on_reconnected;
  natsConnectionHandler on_closed;
  natsErrHandler on_error;
  natsOnCompleteCB on_complete;
  struct client *client;
};

extern struct broker broker;

/* There is one of each, and nothing in it. */
extern char fake_object[1];
#define CONNECTION ((natsConnection *)(void *)fake_object)
#define SUBSCRIPTION ((natsSubscription *)(void *)fake_object)
#define OPTIONS ((natsOptions *)(void *)fake_object)

/** Takes what the client publishes: whatever it was told before, it must be a message. */
natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes);

#endif
