#ifndef PUSH_NORM_H
#define PUSH_NORM_H

#include <pserver.h>

/**
 * The L2 norm of elements at any alignment, in float64; of integers 0. NaN or infinite exactly if an
 * element, as it travels in the encoding, is.
 */
double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements);

#endif
