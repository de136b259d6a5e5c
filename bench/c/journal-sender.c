/* Publishes to a stream; the bytes without a PubAck stay within the window. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent.h"
#include "counter.h"
#include "payloads.h"

static natsConnection *connection;
static struct counter refused = COUNTER_INITIALIZER;

static void on_refused(jsCtx *js, jsPubAckErr *error, void *closure) {
  (void)js;
  (void)error;
  (void)closure;
  counter_add(&refused);
}

/** Connects. Argument: URL. */
static bool open_sender(char **arguments, struct answer *answer) {
  return nats_is_ok(natsConnection_ConnectTo(&connection, arguments[0]), "open", answer);
}

static natsStatus send_for(jsCtx *js, const char *subject, struct payloads *payloads,
                           double duration_ms, struct answer *answer) {
  double start_ms = machine_ms();
  uint64_t messages = 0;
  natsStatus status = NATS_OK;
  while (status == NATS_OK && (messages == 0 || machine_ms() - start_ms < duration_ms)) {
    status = js_PublishAsync(js, subject, payloads_next(payloads), (int)payloads->bytes, NULL);
    messages++;
  }
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = WAIT_MAX_MS;
  if (status == NATS_OK) status = js_PublishAsyncComplete(js, &options);
  snprintf(answer->text, sizeof answer->text, "%llu %.6f", (unsigned long long)messages, start_ms);
  return status;
}

/**
 * Publishes for a time. Arguments: subject, bytes of a message, bytes of the array that messages are cut
 * from, duration in ms. Answer: number of messages, time of the first in ms.
 */
static bool run(char **arguments, struct answer *answer) {
  struct payloads payloads;
  if (!payloads_init(&payloads, strtoull(arguments[1], NULL, 10),
                     strtoull(arguments[2], NULL, 10))) {
    return refuse(answer, "no memory");
  }
  jsCtx *js = NULL;
  jsOptions options;
  jsOptions_Init(&options);
  options.PublishAsync.MaxPending = (int64_t)payloads_window(&payloads);
  options.PublishAsync.StallWait = WAIT_MAX_MS;
  options.PublishAsync.ErrHandler = on_refused;
  natsStatus status = natsConnection_JetStream(&js, connection, &options);
  if (status == NATS_OK) {
    status = send_for(js, arguments[0], &payloads, strtod(arguments[3], NULL), answer);
  }
  jsCtx_Destroy(js);
  payloads_release(&payloads);
  if (refused.value > 0) return refuse(answer, "the stream refused messages");
  return nats_is_ok(status, "publish", answer);
}

int main(void) {
  static const struct command commands[] = {{"open", 1, open_sender}, {"run", 4, run}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  return 0;
}
