#ifndef CALLS_NEW_CLIENT_H
#define CALLS_NEW_CLIENT_H

#include "calls/client.h"

/** A client with one reference, whose I/O thread runs, without a connection. INTERNAL. */
pserver_status ps_client_new(const struct ps_identity *identity, const pserver_options *options,
                             struct ps_client **made);

#endif
