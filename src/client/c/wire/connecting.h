#ifndef WIRE_CONNECTING_H
#define WIRE_CONNECTING_H

#include <pserver.h>

#include "wire/identity.h"

/**
 * Connects to the broker and subscribes to the inbox; retries until the time has come. The connection keeps
 * the client alive until ps_disconnect(). NO_BROKER, DENIED, NO_TLS, BAD_VALUE, IO; ABORTED as soon as the
 * thread's canceller is cancelled: an attempt under way is then closed in the background.
 */
pserver_status ps_connect(struct ps_connection *connection, const struct ps_identity *identity,
                          const pserver_options *options, int64_t ends_at_ms);

#endif
