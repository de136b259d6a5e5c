#ifndef PUSH_SENT_UPDATES_H
#define PUSH_SENT_UPDATES_H

#include "calls/call.h"
#include "push/parameter-update.h"

/**
 * Sends all blocks of updates and waits; `goes_alone`: each in a record of its own, see ps_call_updates.
 * Errors as of ps_sending_begin(). After STALE_EPOCH the updates' parameters are forgotten.
 */
pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone);

/** The same for block updates that are cut already. */
pserver_status ps_send_call(struct ps_call *call, struct ps_call_updates *updates);

/** Forgets the parameters of updates if their error says that they are stale; keeps the last error. */
pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_call_updates *updates,
                                  pserver_status status);

#endif
