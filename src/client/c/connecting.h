#ifndef CONNECTING_H
#define CONNECTING_H

#include "client.h"

/**
 * Connects to the broker and subscribes to the inbox; tries again until the time has come.
 * NO_BROKER, DENIED, NO_TLS, BAD_VALUE, IO; ABORTED by the thread's canceller, at once: what is under way
 * then is closed when it ends. The connection keeps the client alive until disconnect().
 */
pserver_status connect_broker(struct client *client, const pserver_options *options,
                              int64_t ends_at_ms);

#endif
