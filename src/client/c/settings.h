#ifndef SETTINGS_H
#define SETTINGS_H

#include <nats/nats.h>
#include <pserver.h>

/**
 * The options of cnats that options and environment stand for, to be destroyed by the caller.
 * BAD_VALUE for a setting that makes no sense, IO for a file that cannot be read.
 */
pserver_status make_nats_options(const pserver_options *options, const char *name,
                                 natsOptions **made);

/** The address list as it will be shown in messages: without credentials. */
void shown_address(const pserver_options *options, char *target, size_t room);

#endif
