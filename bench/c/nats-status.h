#ifndef NATS_STATUS_H
#define NATS_STATUS_H

#include <nats/nats.h>

#include "agent.h"

/** Whether a call of cnats has succeeded; if not, the answer is `what` and the status. */
bool nats_is_ok(natsStatus status, const char *what, struct answer *answer);

#endif
