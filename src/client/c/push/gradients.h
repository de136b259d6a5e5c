#ifndef PUSH_GRADIENTS_H
#define PUSH_GRADIENTS_H

#include "calls/call.h"
#include "push/parameter-update.h"

/** UNSUPPORTED if the encoding is not for the parameter's type; BAD_VALUE if it is none. */
pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/** The BAD_VALUE about one that is none; `what` it was given for. */
pserver_status ps_bad_encoding(const char *what, pserver_encoding encoding);

/** BAD_VALUE for options, which may be NULL, that make no sense. */
pserver_status ps_check_update_options(const struct ps_call *call, const pserver_update_options *options);

/** STATIC if the parameter takes no update. */
pserver_status ps_check_changeable(const struct ps_parameter *parameter);

/** BAD_VALUE unless both are finite. */
pserver_status ps_check_factors(double alpha, double beta);

/** Checks the elements of an update, and takes their norm if the parameter clips by it. NON_FINITE. */
pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements);

#endif
