#ifndef CORE_TIMES_H
#define CORE_TIMES_H

#include <stdint.h>

/** A time that never comes. */
#define PS_NEVER_MS INT64_MAX

/** A time before all others; its distance to any of them does not overflow. */
#define PS_LONG_AGO_MS (INT64_MIN / 2)

#endif
