#ifndef WIRE_CORE_FAILURE_H
#define WIRE_CORE_FAILURE_H

#include "core/failure.h"

/** Makes a failure of the core the last error; returns its code. */
pserver_status ps_fail_as_core(const struct ps_failure *failure);

/** Returns the last error as a failure of the core, with one reference; never NULL. */
struct ps_failure *ps_failure_of_last(void);

#endif
