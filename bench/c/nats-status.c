/* Answers commands with what cnats says. */
#include "nats-status.h"

bool nats_is_ok(natsStatus status, const char *what, struct answer *answer) {
  if (status == NATS_OK) return true;
  return refuse(answer, "%s: %s", what, natsStatus_GetText(status));
}
