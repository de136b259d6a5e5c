#ifndef PUSH_FINITE_H
#define PUSH_FINITE_H

#include <pserver.h>
#include <stdbool.h>

/** Whether elements, at any alignment, are finite, also in this encoding. Integers are. */
bool ps_stays_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                     uint64_t elements);

/** Returns the first element that is not finite, and its index; there must be one. */
double ps_first_non_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                           uint64_t *index);

#endif
