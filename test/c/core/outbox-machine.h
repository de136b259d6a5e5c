#ifndef OUTBOX_MACHINE_H
#define OUTBOX_MACHINE_H

#include "core/outbox.h"
#include "script.h"

/** Calls of one script at most; their ids are below it. */
#define CALLS_MAX 4096

/** Whether a call has been sent and is not over. */
bool is_call_open(uint64_t id);

/** The record in flight that was published the longest ago; the others follow by `next`. */
const struct ps_block_update *first_in_flight(void);

#endif
