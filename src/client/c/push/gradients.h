#ifndef PUSH_GRADIENTS_H
#define PUSH_GRADIENTS_H

#include "calls/call.h"
#include "push/parameter-update.h"

/** UNSUPPORTED if the parameter's type cannot have the encoding; BAD_VALUE for an unknown one. */
pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/** BAD_VALUE about an unknown encoding that was given for `what`. */
pserver_status ps_bad_encoding(const char *what, pserver_encoding encoding);

/** BAD_VALUE for invalid options, which may be NULL. */
pserver_status ps_check_update_options(const struct ps_call *call, const pserver_update_options *options);

/** STATIC if the parameter cannot be updated. */
pserver_status ps_check_changeable(const struct ps_parameter *parameter);

/** BAD_VALUE unless both factors are finite. */
pserver_status ps_check_factors(double alpha, double beta);

/** Checks the elements of an update, and computes their norm if the parameter clips by it. NON_FINITE. */
pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements);

#endif
