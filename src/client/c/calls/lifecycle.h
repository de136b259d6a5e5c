#ifndef CALLS_LIFECYCLE_H
#define CALLS_LIFECYCLE_H

#include "calls/call.h"
#include "calls/parameter.h"

/**
 * The parameter that exists after pserver_create() has settled who initializes it, with one reference.
 */
pserver_status ps_create_parameter(struct ps_call *call, const char *name, const pserver_tensor *value,
                                   const pserver_config *config);

#endif
