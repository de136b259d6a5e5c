/* Publishes to a stream; the bytes without a PubAck stay within the window. */
#include <stdio.h>
#include <stdlib.h>

#include "stream-sender.h"

static natsConnection *connection;

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
    status = stream_sender_publish(js, subject, payloads);
    messages++;
  }
  if (status == NATS_OK) status = stream_sender_complete(js);
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
  natsStatus status = stream_sender_open(&js, connection, &payloads);
  if (status == NATS_OK) {
    status = send_for(js, arguments[0], &payloads, strtod(arguments[3], NULL), answer);
  }
  jsCtx_Destroy(js);
  payloads_release(&payloads);
  return stream_sender_is_ok(status, "publish", answer);
}

int main(void) {
  static const struct command commands[] = {{"open", 1, open_sender}, {"run", 4, run}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  return 0;
}
