#ifndef PULL_PULL_H
#define PULL_PULL_H

#include "calls/call.h"
#include "calls/parameter.h"

/** Reads parameters as pserver_get_with() does, within a call. */
pserver_status ps_pull_parameters(struct ps_call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options);

/** BAD_VALUE for invalid options. */
pserver_status ps_check_read_options(const struct ps_call *call, const pserver_read_options *options);

/** UNSUPPORTED for an encoding unless the parameter is of float32. */
pserver_status ps_check_read_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/** Prepares a tensor to receive values: allocates memory, and sets `*was_allocated`, if `data` is NULL.
 * BAD_DTYPE or BAD_LENGTH if memory of the caller does not fit; INTERNAL. */
pserver_status ps_prepare_target(const struct ps_parameter *parameter, const uint64_t *shape, int32_t rank,
                                 uint64_t elements, pserver_tensor *tensor, bool *was_allocated);

#endif
