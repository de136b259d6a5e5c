#ifndef SENDING_H
#define SENDING_H

#include "outbox.h"

/** Whether the broker said of every sending of a record that it did not store it. */
bool piece_is_stored_nowhere(const struct piece *piece);

/** What became of one piece. Rejections, reasons and obstacles are the last error. */
void sending_applied(struct sending *sending, struct piece *piece);
void sending_rejected(struct sending *sending, struct piece *piece);
void sending_unknown(struct sending *sending, struct piece *piece);
void sending_unsent(struct sending *sending, size_t count);

/** The last error is what ended the call before every piece was settled. */
void sending_ended(struct sending *sending);

/** What came of the whole, once nothing is left. */
pserver_status sending_status(struct sending *sending);

#endif
