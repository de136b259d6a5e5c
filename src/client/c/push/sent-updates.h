#ifndef PUSH_SENT_UPDATES_H
#define PUSH_SENT_UPDATES_H

#include "calls/call.h"
#include "push/parameter-update.h"

/**
 * Sends all blocks of updates; each in a record of its own if it `goes_alone`, see call_updates. STALE_EPOCH
 * forgets their parameters.
 */
pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone);

/** Sends blocks that were cut already; as ps_sending_begin(). STALE_EPOCH forgets their parameters. */
pserver_status ps_send_call(struct ps_call *call, struct ps_call_updates *updates);

/** Forgets the parameters of updates if they failed with an error that says so; the last error stays. */
pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_call_updates *updates,
                                  pserver_status status);

#endif
