/* The broker's connection: cnats, its events, and what comes to the inbox. */
#include "connection.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "clock.h"
#include "outcomes.h"
#include "settings.h"

/** Room in a message beside the tensor. */
#define HEADER_BYTES_MAX 65536
#define PAUSE_MS 50
#define PAUSE_MS_MAX 500

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
  uint64_t numbers[3] = {0};
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
      call_deliver(client, numbers[0], numbers[1], message);
      message = NULL;
    }
  } else if (strncmp(name, "ack.", 4) == 0) {
    const char *token = take_number(name + 4, &numbers[0]);
    token = take_number(token, &numbers[1]);
    if (take_number(token, &numbers[2]) != NULL && numbers[1] < SHARDS_MAX) {
      outbox_on_ack(client, numbers[0], (unsigned)numbers[1], numbers[2], message);
    }
  } else if (strcmp(name, "applied") == 0) {
    on_answers(client, message);
  } else if (strncmp(name, "outcome.", 8) == 0) {
    if (take_number(name + 8, &numbers[0]) != NULL && numbers[0] < SHARDS_MAX) {
      on_outcome_reply(client, (unsigned)numbers[0], message);
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
  wake_all(client);
  pthread_mutex_unlock(&client->lock);
}

static void on_reconnected(natsConnection *connection, void *closure) {
  (void)connection;
  struct client *client = closure;
  pthread_mutex_lock(&client->lock);
  client->is_connected = true;
  client->connections++;
  outbox_on_reconnected(client);
  wake_all(client);
  pthread_mutex_unlock(&client->lock);
}

static void on_closed(natsConnection *connection, void *closure) {
  (void)connection;
  struct client *client = closure;
  pthread_mutex_lock(&client->lock);
  client->is_connected = false;
  client_fail(client, PSERVER_ERR_NO_BROKER, "the connection to the broker is lost for good");
  pthread_mutex_unlock(&client->lock);
  client_release(client);
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
    char subject[SUBJECT_ROOM];
    const char *start = found + sizeof refused - 1;
    snprintf(subject, sizeof subject, "%.*s", (int)strcspn(start, "\""), start);
    deliver_denial(client, subject);
  } else if (strcasestr(text, unheard) != NULL) {
    client_fail(client, PSERVER_ERR_DENIED,
                "the broker refuses subscribing to the inbox: check the user's permissions");
  }
  pthread_mutex_unlock(&client->lock);
}

static void on_unsubscribed(void *closure) { client_release(closure); }

/** Waits until the broker knows the inbox, so that whoever answers finds it, also on a new connection. */
static natsStatus await_inbox(struct client *client, int64_t ends_at_ms) {
  int64_t pause_ms = PAUSE_MS;
  while (true) {
    int64_t left = ends_at_ms - now_ms();
    natsStatus status = natsConnection_FlushTimeout(client->connection, left > 1 ? left : 1);
    int64_t delay_ms = varied_ms(pause_ms);
    bool is_final = status == NATS_OK || status == NATS_CONNECTION_CLOSED;
    if (is_final || now_ms() + delay_ms >= ends_at_ms) return status;
    pause_ms = doubled_ms(pause_ms, PAUSE_MS_MAX);
    nats_Sleep(delay_ms);
  }
}

static pserver_status subscribe(struct client *client, int64_t ends_at_ms) {
  char subject[INBOX_ROOM + 4];
  snprintf(subject, sizeof subject, "%s.>", client->inbox);
  natsStatus status = natsConnection_Subscribe(&client->subscription, client->connection, subject,
                                               on_message, client);
  if (status == NATS_OK) {
    client_retain(client);
    status = natsSubscription_SetOnCompleteCB(client->subscription, on_unsubscribed, client);
    if (status != NATS_OK) client_release(client);
  }
  /* What comes is bounded by what was asked for and sent. */
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(client->subscription, -1, -1);
  if (status == NATS_OK) status = await_inbox(client, ends_at_ms);
  if (status == NATS_OK) return PSERVER_OK;
  return fail(PSERVER_ERR_NO_BROKER, "subscribing to the inbox: %s", natsStatus_GetText(status));
}

static pserver_status connect_failure(natsStatus status, const pserver_options *options) {
  char address[256];
  const char *detail = nats_GetLastError(NULL);
  shown_address(options, address, sizeof address);
  if (status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED) {
    return fail(PSERVER_ERR_DENIED, "the broker at %s refuses the credentials: %s", address,
                detail == NULL ? natsStatus_GetText(status) : detail);
  }
  if (status == NATS_SECURE_CONNECTION_WANTED) {
    return fail(PSERVER_ERR_NO_TLS,
                "the broker at %s offers no TLS, which tls:// or a certificate file asks for: nothing "
                "was sent to it; give nats:// if the connection may be read by others",
                address);
  }
  /* Of a certificate that is refused cnats tells where in its chain. */
  if (status == NATS_SSL_ERROR && detail != NULL && strstr(detail, ":depth=") != NULL) {
    return fail(PSERVER_ERR_NO_TLS, "the certificate of the broker at %s is refused: %s", address, detail);
  }
  return fail(PSERVER_ERR_NO_BROKER,
              "no broker answers at %s (%s): start nats-server with JetStream there, or give its "
              "address as url or in PSERVER_URL",
              address, natsStatus_GetText(status));
}

static natsStatus set_handlers(natsOptions *made, struct client *client) {
  natsStatus set = natsOptions_SetDisconnectedCB(made, on_disconnected, client);
  if (set == NATS_OK) set = natsOptions_SetReconnectedCB(made, on_reconnected, client);
  if (set == NATS_OK) set = natsOptions_SetClosedCB(made, on_closed, client);
  if (set == NATS_OK) set = natsOptions_SetErrorHandler(made, on_error, client);
  return set;
}

static pserver_status connect_until(struct client *client, natsOptions *made,
                                    const pserver_options *options, int64_t ends_at_ms) {
  int64_t pause_ms = PAUSE_MS;
  while (true) {
    int64_t left = ends_at_ms - now_ms();
    natsOptions_SetTimeout(made, left < options->attempt_timeout_ms ? (left > 1 ? left : 1)
                                                                    : options->attempt_timeout_ms);
    natsStatus status = natsConnection_Connect(&client->connection, made);
    if (status == NATS_OK) return PSERVER_OK;
    pserver_status failed = connect_failure(status, options);
    int64_t delay_ms = varied_ms(pause_ms);
    bool is_final = failed == PSERVER_ERR_DENIED || failed == PSERVER_ERR_NO_TLS;
    if (is_final || now_ms() + delay_ms >= ends_at_ms) return failed;
    pause_ms = doubled_ms(pause_ms, PAUSE_MS_MAX);
    nats_Sleep(delay_ms);
  }
}

pserver_status connect_broker(struct client *client, const pserver_options *options,
                              int64_t ends_at_ms) {
  char name[JOB_BYTES_MAX + ID_ROOM + 16];
  snprintf(name, sizeof name, "pserver %s %s", client->job, client->trainer);
  natsOptions *made = NULL;
  pserver_status status = make_nats_options(options, name, &made);
  if (status != PSERVER_OK) return status;
  if (set_handlers(made, client) != NATS_OK) status = fail(PSERVER_ERR_INTERNAL, "no memory");
  /* The connection's own, until it says that it is closed. */
  client_retain(client);
  client->is_connected = true;
  client->connections = 1;
  if (status == PSERVER_OK) status = connect_until(client, made, options, ends_at_ms);
  natsOptions_Destroy(made);
  if (status != PSERVER_OK) {
    client_release(client);
    return status;
  }
  status = subscribe(client, ends_at_ms);
  if (status != PSERVER_OK) disconnect(client);
  return status;
}

void disconnect(struct client *client) {
  natsConnection_Close(client->connection);
  natsSubscription_Destroy(client->subscription);
  natsConnection_Destroy(client->connection);
  client->subscription = NULL;
  client->connection = NULL;
}

size_t data_bytes_max(struct client *client) {
  int64_t most = natsConnection_GetMaxPayload(client->connection);
  if (most <= 0) return SIZE_MAX;
  return most > HEADER_BYTES_MAX ? (size_t)(most - HEADER_BYTES_MAX) : 0;
}

pserver_status publish(struct client *client, const char *subject, const char *reply,
                       const void *bytes, size_t count) {
  int64_t most = natsConnection_GetMaxPayload(client->connection);
  if (count > INT_MAX || (most > 0 && count > (uint64_t)most)) {
    return fail(PSERVER_ERR_TOO_LARGE,
                "message of %zu bytes: the broker takes at most %lld (max_payload)", count,
                (long long)most);
  }
  natsStatus status =
      natsConnection_PublishRequest(client->connection, subject, reply, bytes, (int)count);
  if (status == NATS_OK) return PSERVER_OK;
  if (status == NATS_CONNECTION_CLOSED) {
    return fail(PSERVER_ERR_CLOSED, "the connection to the broker is closed");
  }
  pserver_status code = status == NATS_INSUFFICIENT_BUFFER ? PSERVER_ERR_NO_BROKER : PSERVER_ERR_IO;
  return fail(code, "publishing to %s: %s", subject, natsStatus_GetText(status));
}
