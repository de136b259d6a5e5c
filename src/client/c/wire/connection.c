/* The broker's connection: cnats, its events, and what comes to the inbox. */
#include "wire/connection.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/call.h"
#include "errors/details.h"
#include "push/update-sender.h"
#include "wire/clock.h"

/** Bytes of a message kept free for its entries. */
#define HEADER_BYTES_MAX 65536

/** The number in a token, and the text after its dot. NULL if it is none. */
static const char *take_number(const char *text, uint64_t *number) {
  char *end = NULL;
  if (text == NULL || *text < '0' || *text > '9') return NULL;
  *number = strtoull(text, &end, 10);
  return *end == '.' ? end + 1 : end;
}

static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  (void)connection;
  (void)subscription;
  struct client *client = closure;
  size_t inbox_bytes = strlen(client->inbox);
  const char *subject = natsMsg_GetSubject(message);
  uint64_t numbers[2] = {0};
  /* A broker could send anything to a subscription. */
  if (strncmp(subject, client->inbox, inbox_bytes) != 0 || subject[inbox_bytes] != '.') {
    natsMsg_Destroy(message);
    return;
  }
  const char *name = subject + inbox_bytes + 1;
  pthread_mutex_lock(&client->lock);
  if (strncmp(name, "reply.", 6) == 0) {
    const char *token = take_number(name + 6, &numbers[0]);
    if (take_number(token, &numbers[1]) != NULL) {
      ps_call_deliver(client, numbers[0], numbers[1], message);
      message = NULL;
    }
  } else if (strncmp(name, "ack.", 4) == 0) {
    const char *token = take_number(name + 4, &numbers[0]);
    if (take_number(token, &numbers[1]) != NULL) {
      ps_on_ack(client, numbers[0], numbers[1], message);
    }
  } else if (strcmp(name, "applied") == 0) {
    ps_on_answers(client, message);
  } else if (strncmp(name, "outcome.", 8) == 0) {
    if (take_number(name + 8, &numbers[0]) != NULL && numbers[0] < PS_SHARDS_MAX) {
      ps_on_outcome_reply(client, (unsigned)numbers[0], message);
    }
  }
  pthread_mutex_unlock(&client->lock);
  natsMsg_Destroy(message);
}

static void on_disconnected(natsConnection *connection, void *closure) {
  (void)connection;
  struct client *client = closure;
  pthread_mutex_lock(&client->lock);
  client->is_connected = false;
  ps_outbox_disconnected(client->sender.outbox);
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
}

static void on_reconnected(natsConnection *connection, void *closure) {
  (void)connection;
  struct client *client = closure;
  pthread_mutex_lock(&client->lock);
  client->is_connected = true;
  client->connections++;
  ps_outbox_reconnected(client->sender.outbox, ps_now_ms());
  ps_wake_all(client);
  pthread_mutex_unlock(&client->lock);
}

static void on_closed(natsConnection *connection, void *closure) {
  (void)connection;
  struct client *client = closure;
  pthread_mutex_lock(&client->lock);
  client->is_connected = false;
  ps_client_fail(client, PSERVER_ERR_NO_BROKER, "the connection to the broker is lost for good");
  pthread_mutex_unlock(&client->lock);
  ps_client_release(client);
}

/** The broker refused a subject: `Permissions Violation for Publish to "ps.…"`. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus error,
                     void *closure) {
  (void)subscription;
  (void)error;
  static const char refused[] = "Permissions Violation for Publish to \"";
  static const char unheard[] = "Permissions Violation for Subscription";
  struct client *client = closure;
  const char *text = NULL;
  natsConnection_GetLastError(connection, &text);
  if (text == NULL) return;
  pthread_mutex_lock(&client->lock);
  const char *found = strcasestr(text, refused);
  if (found != NULL) {
    char subject[SUBJECT_SIZE];
    const char *start = found + sizeof refused - 1;
    snprintf(subject, sizeof subject, "%.*s", (int)strcspn(start, "\""), start);
    ps_deliver_denial(client, subject);
  } else if (strcasestr(text, unheard) != NULL) {
    ps_client_fail(client, PSERVER_ERR_DENIED,
                   "the broker refuses subscribing to the inbox: check the user's permissions");
  }
  pthread_mutex_unlock(&client->lock);
}

static void on_unsubscribed(void *closure) { ps_client_release(closure); }

natsStatus ps_set_handlers(natsOptions *options, struct client *client) {
  natsStatus set = natsOptions_SetDisconnectedCB(options, on_disconnected, client);
  if (set == NATS_OK) set = natsOptions_SetReconnectedCB(options, on_reconnected, client);
  if (set == NATS_OK) set = natsOptions_SetClosedCB(options, on_closed, client);
  if (set == NATS_OK) set = natsOptions_SetErrorHandler(options, on_error, client);
  return set;
}

natsStatus ps_subscribe_inbox(struct client *client) {
  char subject[INBOX_SIZE + 4];
  snprintf(subject, sizeof subject, "%s.>", client->inbox);
  natsStatus status =
      natsConnection_Subscribe(&client->subscription, client->connection, subject, on_message, client);
  if (status == NATS_OK) {
    ps_client_retain(client);
    status = natsSubscription_SetOnCompleteCB(client->subscription, on_unsubscribed, client);
    if (status != NATS_OK) ps_client_release(client);
  }
  /* Answers are bounded by what was asked for and sent, so no message may be dropped. */
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(client->subscription, -1, -1);
  return status;
}

void ps_disconnect(struct client *client) {
  natsConnection_Close(client->connection);
  natsSubscription_Destroy(client->subscription);
  natsConnection_Destroy(client->connection);
  client->subscription = NULL;
  client->connection = NULL;
}

size_t ps_data_bytes_max(struct client *client) {
  int64_t most = natsConnection_GetMaxPayload(client->connection);
  if (most <= 0) return SIZE_MAX;
  return most > HEADER_BYTES_MAX ? (size_t)(most - HEADER_BYTES_MAX) : 0;
}

pserver_status ps_check_payload(struct client *client, const char *subject, size_t bytes) {
  int64_t most = natsConnection_GetMaxPayload(client->connection);
  if (bytes <= INT_MAX && (most <= 0 || bytes <= (uint64_t)most)) return PSERVER_OK;
  ps_fail(PSERVER_ERR_TOO_LARGE, "message of %zu bytes: the broker takes at most %lld (max_payload)",
          bytes, (long long)most);
  ps_detail_signed("expected", most);
  ps_detail_whole("received", bytes);
  return ps_detail_text("subject", subject);
}

pserver_status ps_publish(struct client *client, const char *subject, const char *reply,
                          const void *bytes, size_t count) {
  pserver_status checked = ps_check_payload(client, subject, count);
  if (checked != PSERVER_OK) return checked;
  natsStatus status =
      reply == NULL
          ? natsConnection_Publish(client->connection, subject, bytes, (int)count)
          : natsConnection_PublishRequest(client->connection, subject, reply, bytes, (int)count);
  if (status == NATS_OK) return PSERVER_OK;
  if (status == NATS_CONNECTION_CLOSED) {
    return ps_fail(PSERVER_ERR_CLOSED, "the connection to the broker is closed");
  }
  pserver_status code = status == NATS_INSUFFICIENT_BUFFER ? PSERVER_ERR_NO_BROKER : PSERVER_ERR_IO;
  return ps_fail(code, "publishing to %s: %s", subject, natsStatus_GetText(status));
}
