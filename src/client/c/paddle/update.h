#ifndef PADDLE_UPDATE_H
#define PADDLE_UPDATE_H

#include "tensor.h"
#include "trainer.h"

/* Each returns 0, or -1 with a message, and nothing is sent. */

/** One step of the optimizer of each parameter, with its own rate if `learning_rate` is NULL. */
int ps_send_gradients(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                      int total, const double *learning_rate);

/** Overwrites values. */
int ps_set_values(const char *function, struct ps_trainer *trainer, const struct ps_values *values, int total);

/** Has a host write the model. */
int ps_save_model(const char *function, struct ps_trainer *trainer, const char *path);

#endif
