#ifndef STREAM_SENDER_H
#define STREAM_SENDER_H

#include "nats-status.h"
#include "payloads.h"

/** Opens a context whose messages without a PubAck stay within the window. */
natsStatus stream_sender_open(jsCtx **js, natsConnection *connection,
                              const struct payloads *payloads);

/** Publishes the next message. */
natsStatus stream_sender_publish(jsCtx *js, const char *subject, struct payloads *payloads);

/** Waits until all messages are acknowledged. */
natsStatus stream_sender_complete(jsCtx *js);

/** Whether all went well; if not, the answer is `what` and the status, or that the stream refused messages. */
bool stream_sender_is_ok(natsStatus status, const char *what, struct answer *answer);

#endif
