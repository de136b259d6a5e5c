#ifndef OUTBOX_MACHINE_H
#define OUTBOX_MACHINE_H

#include "core/core.h"
#include "script.h"

/** The maximum number of calls of a script; their ids are smaller. */
#define CALLS_MAX 4096

/** Whether a call has been sent and is not over. */
bool is_call_open(uint64_t id);

/** Returns the record in flight whose last publication is the oldest; the others follow by `next`. */
const struct ps_block_update *first_in_flight(void);

#endif
