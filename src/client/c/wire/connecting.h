#ifndef WIRE_CONNECTING_H
#define WIRE_CONNECTING_H

#include <pserver.h>

#include "wire/identity.h"

/**
 * Connects to the broker and subscribes to the inbox; tries again until the time has come.
 * NO_BROKER, DENIED, NO_TLS, BAD_VALUE, IO; ABORTED by the thread's canceller, at once: what is under way
 * then is closed when it ends. The connection keeps the client alive until ps_disconnect().
 */
pserver_status ps_connect(struct ps_connection *connection, const struct ps_identity *identity,
                          const pserver_options *options, int64_t ends_at_ms);

#endif
