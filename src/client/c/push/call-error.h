#ifndef PUSH_CALL_ERROR_H
#define PUSH_CALL_ERROR_H

#include <pserver.h>

#include "core/update-call.h"
#include "push/update-record.h"

/**
 * Returns OK if a call that is over has succeeded, otherwise its error, as last error: the first rejection,
 * with the block that it is about; OUTCOME_UNKNOWN, which names the updates that are applied once or not at
 * all; or what ended the call or kept updates from being stored.
 */
pserver_status ps_call_error(const struct ps_update_call *call, const struct ps_update_record *records,
                             const char *trainer);

#endif
