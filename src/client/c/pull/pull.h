#ifndef PULL_PULL_H
#define PULL_PULL_H

#include "calls/call.h"
#include "calls/parameter.h"

/** pserver_get_with() within a call. */
pserver_status ps_pull_parameters(struct ps_call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options);

/** BAD_VALUE for options that make no sense. */
pserver_status ps_check_read_options(const struct ps_call *call, const pserver_read_options *options);

/** UNSUPPORTED for an encoding of another type than float32. */
pserver_status ps_check_read_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/** A tensor for values of a parameter: allocated if `data` is NULL, else BAD_DTYPE, BAD_LENGTH unless it
 * fits. `was_allocated` says which. */
pserver_status ps_prepare_target(const struct ps_parameter *parameter, const uint64_t *shape, int32_t rank,
                                 uint64_t elements, pserver_tensor *tensor, bool *was_allocated);

#endif
