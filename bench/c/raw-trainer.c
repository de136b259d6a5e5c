/* Makes raw steps: messages to a stream, all acknowledged, and then as many bytes from the server that reads it. */
#include <stdio.h>
#include <stdlib.h>

#include "counter.h"
#include "raw-step.h"
#include "stream-sender.h"

static natsConnection *connection;
static jsCtx *js;
static struct payloads gradients;
/** Messages of a step, each way. */
static uint64_t records;
/** Messages sent in all steps. */
static uint64_t sent;
static struct counter received = COUNTER_INITIALIZER;

static void on_values(natsConnection *from, natsSubscription *subscription, natsMsg *message,
                      void *closure) {
  (void)from;
  (void)subscription;
  (void)closure;
  natsMsg_Destroy(message);
  counter_add(&received);
}

/** Connects. Arguments: URL, messages of a step, bytes of a message. */
static bool open_trainer(char **arguments, struct answer *answer) {
  natsSubscription *subscription = NULL;
  records = strtoull(arguments[1], NULL, 10);
  uint64_t bytes = strtoull(arguments[2], NULL, 10);
  if (!payloads_init(&gradients, bytes, records * bytes)) return refuse(answer, "no memory");
  natsStatus status = natsConnection_ConnectTo(&connection, arguments[0]);
  if (status == NATS_OK) status = stream_sender_open(&js, connection, &gradients);
  if (status == NATS_OK) {
    status = natsConnection_Subscribe(&subscription, connection, RAW_VALUES, on_values, NULL);
  }
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(subscription, -1, -1);
  if (status == NATS_OK) status = natsConnection_Flush(connection);
  return nats_is_ok(status, "open", answer);
}

static natsStatus push(void) {
  natsStatus status = NATS_OK;
  for (uint64_t i = 0; i < records && status == NATS_OK; i++) {
    status = stream_sender_publish(js, RAW_RECORDS, &gradients);
    sent++;
  }
  return status == NATS_OK ? stream_sender_complete(js) : status;
}

static natsStatus pull(void) {
  char position[24];
  double raised_ms;
  int length = snprintf(position, sizeof position, "%llu", (unsigned long long)sent);
  natsStatus status =
      natsConnection_PublishRequest(connection, RAW_REQUESTS, RAW_VALUES, position, length);
  if (status != NATS_OK) return status;
  return counter_wait(&received, sent, &raised_ms) ? NATS_OK : NATS_TIMEOUT;
}

/** Makes steps for a time. Argument: duration in ms. Answer: number of steps, times of begin and end in ms. */
static bool run(char **arguments, struct answer *answer) {
  double duration_ms = strtod(arguments[0], NULL);
  double start_ms = machine_ms();
  uint64_t steps = 0;
  natsStatus status = NATS_OK;
  while (status == NATS_OK && (steps == 0 || machine_ms() - start_ms < duration_ms)) {
    status = push();
    if (status == NATS_OK) status = pull();
    steps++;
  }
  snprintf(answer->text, sizeof answer->text, "%llu %.6f %.6f", (unsigned long long)steps, start_ms,
           machine_ms());
  return stream_sender_is_ok(status, "run", answer);
}

int main(void) {
  static const struct command commands[] = {{"open", 3, open_trainer}, {"run", 1, run}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  jsCtx_Destroy(js);
  natsConnection_Destroy(connection);
  payloads_release(&gradients);
  return 0;
}
