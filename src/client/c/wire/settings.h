#ifndef WIRE_SETTINGS_H
#define WIRE_SETTINGS_H

#include <nats/nats.h>
#include <pserver.h>

/**
 * The options of cnats that options and environment stand for, to be destroyed by the caller.
 * BAD_VALUE for a setting that makes no sense, IO for a file that cannot be read.
 */
pserver_status ps_make_nats_options(const pserver_options *options, const char *name,
                                    natsOptions **made);

/** The address list as it will be shown in messages: without credentials. */
void ps_shown_address(const pserver_options *options, char *target, size_t size);

#endif
