#ifndef WIRE_SETTINGS_H
#define WIRE_SETTINGS_H

#include <nats/nats.h>
#include <pserver.h>

/**
 * Makes the options of cnats from the client's options and the environment; the caller destroys them.
 * BAD_VALUE for an invalid setting, IO for a file that cannot be read.
 */
pserver_status ps_make_nats_options(const pserver_options *options, const char *name,
                                    natsOptions **made);

/** Writes the address list without credentials, for error texts. */
void ps_shown_address(const pserver_options *options, char *target, size_t size);

#endif
