/* Reads a stream while it is written, and counts its messages. */
#include "stream-reader.h"

#include <stdio.h>
#include <string.h>

#define CONSUMER "reader"
#define INBOX "bench.stream-reader"
#define NAME_BYTES 64
/** Bytes requested ahead: as many as a host allows each of its connections. */
#define CREDIT_BYTES ((size_t)32 * 1024 * 1024)
#define BATCH_MAX 256

struct counter stream_received = COUNTER_INITIALIZER;

static natsConnection *connection;
static natsSubscription *subscription;
static char name[NAME_BYTES];
static char requests[160];
/** Messages of one request; two requests are open at a time. */
static uint64_t batch;

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
  if (is_of_stream && counter_add(&stream_received) % batch == 0) ask_for_more();
}

static natsStatus make_stream(jsCtx *js, const struct stream_options *options) {
  const char *subjects[] = {options->subject};
  jsStreamConfig config;
  jsConsumerConfig consumer;
  jsStreamConfig_Init(&config);
  config.Name = options->name;
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  config.Storage = options->storage;
  if (options->bytes_max > 0) config.MaxBytes = options->bytes_max;
  jsConsumerConfig_Init(&consumer);
  consumer.Durable = CONSUMER;
  consumer.AckPolicy = js_AckNone;
  consumer.MemoryStorage = true;
  natsStatus status = js_AddStream(NULL, js, &config, NULL, NULL);
  return status == NATS_OK ? js_AddConsumer(NULL, js, options->name, &consumer, NULL, NULL)
                           : status;
}

natsStatus stream_reader_start(natsConnection *to, const struct stream_options *options) {
  jsCtx *js = NULL;
  uint64_t messages = CREDIT_BYTES / 2 / options->bytes;
  connection = to;
  batch = messages > BATCH_MAX ? BATCH_MAX : messages > 0 ? messages : 1;
  snprintf(name, sizeof name, "%s", options->name);
  snprintf(requests, sizeof requests, "$JS.API.CONSUMER.MSG.NEXT.%s." CONSUMER, name);
  counter_set(&stream_received, 0);
  natsStatus status = natsConnection_JetStream(&js, connection, NULL);
  if (status == NATS_OK) status = make_stream(js, options);
  jsCtx_Destroy(js);
  if (status == NATS_OK) {
    status = natsConnection_Subscribe(&subscription, connection, INBOX, on_message, NULL);
  }
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(subscription, -1, -1);
  if (status == NATS_OK) status = ask_for_more();
  if (status == NATS_OK) status = ask_for_more();
  return status == NATS_OK ? natsConnection_Flush(connection) : status;
}

natsStatus stream_reader_stop(void) {
  jsCtx *js = NULL;
  natsSubscription_Destroy(subscription);
  subscription = NULL;
  natsStatus status = natsConnection_JetStream(&js, connection, NULL);
  if (status == NATS_OK) status = js_DeleteStream(js, name, NULL, NULL);
  jsCtx_Destroy(js);
  return status;
}
