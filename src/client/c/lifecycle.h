#ifndef LIFECYCLE_H
#define LIFECYCLE_H

#include "call.h"
#include "parameter.h"

/**
 * The parameter that exists after pserver_create() has settled who initializes it, with one reference.
 */
pserver_status create_parameter(struct call *call, const char *name, const pserver_tensor *value,
                                const pserver_config *config);

#endif
