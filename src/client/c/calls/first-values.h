#ifndef CALLS_FIRST_VALUES_H
#define CALLS_FIRST_VALUES_H

#include "calls/declaration.h"

/**
 * Stores the values of declared parameters, for which this trainer was selected; in a repeat, what is there
 * already is done. Errors as of pserver_init_param().
 */
pserver_status ps_store_first_values(struct ps_call *call, struct ps_declaration *declarations, size_t count);

#endif
