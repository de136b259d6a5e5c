#ifndef CALLS_FIRST_VALUES_H
#define CALLS_FIRST_VALUES_H

#include "calls/declaration.h"

/**
 * Stores the values of declared parameters, which this trainer is selected to initialize. In a repeat with
 * the same values, blocks that are stored already count as done. Errors as of pserver_init_param().
 */
pserver_status ps_store_first_values(struct ps_call *call, struct ps_declaration *declarations, size_t count);

#endif
