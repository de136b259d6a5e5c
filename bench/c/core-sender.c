/* Publishes to core NATS; the receiver's reports keep the bytes in flight within the window. */
#include <stdio.h>
#include <stdlib.h>

#include "counter.h"
#include "nats-status.h"
#include "payloads.h"

static natsConnection *connection;
static char target[128];
static struct counter received = COUNTER_INITIALIZER;

static void on_report(natsConnection *from, natsSubscription *subscription, natsMsg *message,
                      void *closure) {
  (void)from;
  (void)subscription;
  (void)closure;
  counter_set(&received, strtoull(natsMsg_GetData(message), NULL, 10));
  natsMsg_Destroy(message);
}

/** Connects. Arguments: URL, subject. */
static bool open_sender(char **arguments, struct answer *answer) {
  char reports[sizeof target + 16];
  natsSubscription *subscription = NULL;
  snprintf(target, sizeof target, "%s", arguments[1]);
  snprintf(reports, sizeof reports, "%s.received", target);
  natsStatus status = natsConnection_ConnectTo(&connection, arguments[0]);
  if (status == NATS_OK) {
    status = natsConnection_Subscribe(&subscription, connection, reports, on_report, NULL);
  }
  if (status == NATS_OK) status = natsConnection_Flush(connection);
  return nats_is_ok(status, "open", answer);
}

static bool send_for(struct payloads *payloads, double duration_ms, struct answer *answer) {
  size_t window = payloads_window(payloads);
  double start_ms = machine_ms();
  double raised_ms;
  uint64_t messages = 0;
  counter_set(&received, 0);
  while (messages == 0 || machine_ms() - start_ms < duration_ms) {
    uint64_t reported = messages < window ? 0 : messages - window + 1;
    if (!counter_wait(&received, reported, &raised_ms)) {
      return refuse(answer, "the receiver reports nothing after %llu messages",
                    (unsigned long long)messages);
    }
    natsStatus status = natsConnection_Publish(connection, target, payloads_next(payloads),
                                               (int)payloads->bytes);
    if (status != NATS_OK) return nats_is_ok(status, "publish", answer);
    messages++;
  }
  snprintf(answer->text, sizeof answer->text, "%llu %.6f", (unsigned long long)messages, start_ms);
  return nats_is_ok(natsConnection_Flush(connection), "flush", answer);
}

/**
 * Publishes for a time. Arguments: bytes of a message, bytes of the array that messages are cut from,
 * duration in ms. Answer: number of messages, time of the first in ms.
 */
static bool run(char **arguments, struct answer *answer) {
  struct payloads payloads;
  if (!payloads_init(&payloads, strtoull(arguments[0], NULL, 10),
                     strtoull(arguments[1], NULL, 10))) {
    return refuse(answer, "no memory");
  }
  bool is_ok = send_for(&payloads, strtod(arguments[2], NULL), answer);
  payloads_release(&payloads);
  return is_ok;
}

int main(void) {
  static const struct command commands[] = {{"open", 2, open_sender}, {"run", 3, run}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  return 0;
}
