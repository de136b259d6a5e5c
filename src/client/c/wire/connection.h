#ifndef WIRE_CONNECTION_H
#define WIRE_CONNECTION_H

#include "calls/client.h"

/** Has the connection's events and messages come to the client. */
natsStatus ps_set_handlers(natsOptions *options, struct client *client);
natsStatus ps_subscribe_inbox(struct client *client);

/** Closes the connection. Lock not held. */
void ps_disconnect(struct client *client);

/** Bytes of index and elements that a message has room for: what the broker takes, less the entries. */
size_t ps_data_bytes_max(struct client *client);

/** TOO_LARGE if the broker takes no message of so many bytes. */
pserver_status ps_check_payload(struct client *client, const char *subject, size_t bytes);

/**
 * Hands a message to the connection, `reply` NULL for none; it is copied. Lock not held: it may block for as long as the
 * broker takes nothing, at most 5 s. NO_BROKER while there is no connection, IO if it broke meanwhile,
 * so that part of the message may have gone; TOO_LARGE, CLOSED.
 */
pserver_status ps_publish(struct client *client, const char *subject, const char *reply,
                          const void *bytes, size_t count);

#endif
