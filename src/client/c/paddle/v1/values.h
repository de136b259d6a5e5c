#ifndef PADDLE_V1_VALUES_H
#define PADDLE_V1_VALUES_H

#include "../tensor.h"
#include "../trainer.h"

/** Values with the length that is known of the parameter. False with a message if none is, or it is
 * of another type: then the length in bytes would be another one than the trainer's. */
bool ps_measure(const char *function, struct ps_trainer *trainer, const char *name, int element_type,
                const void *content, struct ps_values *values);

#endif
