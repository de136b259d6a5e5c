#ifndef CALLS_NEW_CLIENT_H
#define CALLS_NEW_CLIENT_H

#include "calls/client.h"

/** Makes a client with one reference and a running I/O thread, not connected yet. INTERNAL. */
pserver_status ps_client_new(const struct ps_identity *identity, const pserver_options *options,
                             struct ps_client **made);

#endif
