/* Reads the records of raw steps from a stream, and sends as many bytes back when it is asked for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nats-status.h"
#include "payloads.h"
#include "raw-step.h"
#include "stream-reader.h"

/** Bytes that a host retains of a shard's journal by default. */
#define STREAM_BYTES_MAX ((int64_t)1024 * 1024 * 1024)

static natsConnection *connection;
static struct payloads values;
/** Messages of one answer. */
static uint64_t records;

/** Answers a request when the stream's messages up to the one that it names have been read. */
static void on_request(natsConnection *from, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  (void)subscription;
  (void)closure;
  double raised_ms;
  uint64_t position = strtoull(natsMsg_GetData(message), NULL, 10);
  const char *reply = natsMsg_GetReply(message);
  /* Without an answer, the trainer notices by its time limit. */
  if (reply != NULL && counter_wait(&stream_received, position, &raised_ms)) {
    for (uint64_t i = 0; i < records; i++) {
      natsConnection_Publish(from, reply, payloads_next(&values), (int)values.bytes);
    }
  }
  natsMsg_Destroy(message);
}

/** Makes the stream and serves. Arguments: URL, storage, messages of a step, bytes of a message. */
static bool serve(char **arguments, struct answer *answer) {
  natsSubscription *subscription = NULL;
  records = strtoull(arguments[2], NULL, 10);
  struct stream_options options = {
      .name = RAW_STREAM,
      .subject = RAW_RECORDS,
      .storage = strcmp(arguments[1], "memory") == 0 ? js_MemoryStorage : js_FileStorage,
      .bytes = strtoull(arguments[3], NULL, 10),
      .bytes_max = STREAM_BYTES_MAX,
  };
  if (!payloads_init(&values, options.bytes, records * options.bytes)) {
    return refuse(answer, "no memory");
  }
  natsStatus status = natsConnection_ConnectTo(&connection, arguments[0]);
  if (status == NATS_OK) status = stream_reader_start(connection, &options);
  if (status == NATS_OK) {
    status = natsConnection_Subscribe(&subscription, connection, RAW_REQUESTS, on_request, NULL);
  }
  if (status == NATS_OK) status = natsConnection_Flush(connection);
  return nats_is_ok(status, "serve", answer);
}

int main(void) {
  static const struct command commands[] = {{"serve", 4, serve}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  payloads_release(&values);
  return 0;
}
