/* Reads a stream while it is written, through a pull consumer that needs no acknowledgements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "counter.h"

#define CONSUMER "reader"
#define INBOX "bench.journal-receiver"
/** Bytes requested ahead: as many as a host allows each of its connections. */
#define CREDIT_BYTES ((size_t)32 * 1024 * 1024)

static natsConnection *connection;
static natsSubscription *subscription;
static char requests[160];
/** Messages of one request; two requests are open at a time. */
static uint64_t batch;
static struct counter received = COUNTER_INITIALIZER;

static natsStatus ask_for_more(void) {
  char text[48];
  int length = snprintf(text, sizeof text, "{\"batch\":%llu}", (unsigned long long)batch);
  return natsConnection_PublishRequest(connection, requests, INBOX, text, length);
}

static void on_message(natsConnection *from, natsSubscription *of, natsMsg *message,
                       void *closure) {
  (void)from;
  (void)of;
  (void)closure;
  const char *reply = natsMsg_GetReply(message);
  bool is_of_stream = reply != NULL && strncmp(reply, "$JS.ACK.", 8) == 0;
  natsMsg_Destroy(message);
  /* Not checked: if a request fails, messages are missing at the end. */
  if (is_of_stream && counter_add(&received) % batch == 0) ask_for_more();
}

/** Connects. Argument: URL. */
static bool open_receiver(char **arguments, struct answer *answer) {
  return nats_is_ok(natsConnection_ConnectTo(&connection, arguments[0]), "open", answer);
}

static natsStatus make_stream(jsCtx *js, const char *stream, const char *subject) {
  const char *subjects[] = {subject};
  jsStreamConfig config;
  jsConsumerConfig consumer;
  jsStreamConfig_Init(&config);
  config.Name = stream;
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  jsConsumerConfig_Init(&consumer);
  consumer.Durable = CONSUMER;
  consumer.AckPolicy = js_AckNone;
  consumer.MemoryStorage = true;
  natsStatus status = js_AddStream(NULL, js, &config, NULL, NULL);
  return status == NATS_OK ? js_AddConsumer(NULL, js, stream, &consumer, NULL, NULL) : status;
}

/** Makes a stream and starts to read it. Arguments: its name, its subject, bytes of a message. */
static bool read_stream(char **arguments, struct answer *answer) {
  jsCtx *js = NULL;
  uint64_t messages = CREDIT_BYTES / 2 / strtoull(arguments[2], NULL, 10);
  batch = messages > 256 ? 256 : messages > 0 ? messages : 1;
  snprintf(requests, sizeof requests, "$JS.API.CONSUMER.MSG.NEXT.%s." CONSUMER, arguments[0]);
  counter_set(&received, 0);
  natsStatus status = natsConnection_JetStream(&js, connection, NULL);
  if (status == NATS_OK) status = make_stream(js, arguments[0], arguments[1]);
  jsCtx_Destroy(js);
  if (status == NATS_OK) {
    status = natsConnection_Subscribe(&subscription, connection, INBOX, on_message, NULL);
  }
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(subscription, -1, -1);
  if (status == NATS_OK) status = ask_for_more();
  if (status == NATS_OK) status = ask_for_more();
  if (status == NATS_OK) status = natsConnection_Flush(connection);
  return nats_is_ok(status, "read", answer);
}

/** Arguments: number of messages to wait for, stream to delete then. Answer: time of the last in ms. */
static bool last(char **arguments, struct answer *answer) {
  double last_ms;
  jsCtx *js = NULL;
  bool has_all = counter_wait(&received, strtoull(arguments[0], NULL, 10), &last_ms);
  snprintf(answer->text, sizeof answer->text, "%.6f", last_ms);
  natsSubscription_Destroy(subscription);
  natsStatus status = natsConnection_JetStream(&js, connection, NULL);
  if (status == NATS_OK) status = js_DeleteStream(js, arguments[1], NULL, NULL);
  jsCtx_Destroy(js);
  if (!has_all) return refuse(answer, "not all of %s messages came", arguments[0]);
  return nats_is_ok(status, "last", answer);
}

int main(void) {
  static const struct command commands[] = {
      {"open", 1, open_receiver}, {"read", 3, read_stream}, {"last", 2, last}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  return 0;
}
