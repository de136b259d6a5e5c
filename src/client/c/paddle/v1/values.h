#ifndef PADDLE_V1_VALUES_H
#define PADDLE_V1_VALUES_H

#include "../paddle.h"

/** Makes values with the known length of the parameter. False with an error if the length is not known, or
 * the type is another one, so that the content would have another length. */
bool ps_measure(const char *function, struct ps_trainer *trainer, const char *name, int element_type,
                const void *content, struct ps_values *values);

#endif
