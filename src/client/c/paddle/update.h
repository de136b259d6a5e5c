#ifndef PADDLE_UPDATE_H
#define PADDLE_UPDATE_H

#include "tensor.h"
#include "trainer.h"

/* Each returns 0, or -1 with a message, and nothing is sent. */

/** One step of the optimizer of each parameter, with its own rate if `learning_rate` is NULL. */
int send_gradients(const char *function, struct trainer *trainer, const struct values *values,
                   int total, const double *learning_rate);

/** Overwrites values. */
int set_values(const char *function, struct trainer *trainer, const struct values *values, int total);

/** Has a host write the model. */
int save_model(const char *function, struct trainer *trainer, const char *path);

#endif
