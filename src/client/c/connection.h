#ifndef CONNECTION_H
#define CONNECTION_H

#include "client.h"

/** Has the connection's events and messages come to the client. */
natsStatus set_handlers(natsOptions *options, struct client *client);
natsStatus subscribe_inbox(struct client *client);

/** Closes the connection. Lock not held. */
void disconnect(struct client *client);

/** Bytes of index and elements that a message has room for: what the broker takes, less the entries. */
size_t data_bytes_max(struct client *client);

/**
 * Hands a message to the connection, `reply` NULL for none; it is copied. Lock not held: it may block for as long as the
 * broker takes nothing, at most 5 s. NO_BROKER while there is no connection, IO if it broke meanwhile,
 * so that part of the message may have gone; TOO_LARGE, CLOSED.
 */
pserver_status publish(struct client *client, const char *subject, const char *reply,
                       const void *bytes, size_t count);

#endif
