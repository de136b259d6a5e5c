#ifndef PUSH_NORM_H
#define PUSH_NORM_H

#include <pserver.h>

/**
 * Returns the L2 norm of elements, at any alignment, as encoded; 0 for integers. It is NaN or infinite
 * exactly if an encoded element is.
 */
double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements);

#endif
