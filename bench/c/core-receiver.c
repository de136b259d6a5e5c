/* Receives from core NATS and reports to the sender, four times in each window, how many messages it has. */
#include <stdio.h>
#include <stdlib.h>

#include "counter.h"
#include "nats-status.h"
#include "payloads.h"

static natsConnection *connection;
static char reports[160];
static struct counter received = COUNTER_INITIALIZER;

static void on_message(natsConnection *from, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  (void)subscription;
  (void)closure;
  size_t quarter = WINDOW_BYTES / 4 / (size_t)natsMsg_GetDataLength(message);
  natsMsg_Destroy(message);
  uint64_t count = counter_add(&received);
  if (quarter > 1 && count % quarter != 0) return;
  char text[24];
  int length = snprintf(text, sizeof text, "%llu", (unsigned long long)count);
  /* Not checked: if a report is lost, the sender notices by its time limit. */
  natsConnection_Publish(from, reports, text, length);
}

/** Connects and subscribes. Arguments: URL, subject. */
static bool open_receiver(char **arguments, struct answer *answer) {
  natsSubscription *subscription = NULL;
  snprintf(reports, sizeof reports, "%s.received", arguments[1]);
  natsStatus status = natsConnection_ConnectTo(&connection, arguments[0]);
  if (status == NATS_OK) {
    status = natsConnection_Subscribe(&subscription, connection, arguments[1], on_message, NULL);
  }
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(subscription, -1, -1);
  if (status == NATS_OK) status = natsConnection_Flush(connection);
  return nats_is_ok(status, "open", answer);
}

/** Argument: number of messages to wait for. Answer: time of the last in ms. The next count begins at 0. */
static bool last(char **arguments, struct answer *answer) {
  double last_ms;
  if (!counter_wait(&received, strtoull(arguments[0], NULL, 10), &last_ms)) {
    return refuse(answer, "not all of %s messages came", arguments[0]);
  }
  counter_set(&received, 0);
  snprintf(answer->text, sizeof answer->text, "%.6f", last_ms);
  return true;
}

int main(void) {
  static const struct command commands[] = {{"open", 2, open_receiver}, {"last", 1, last}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  return 0;
}
