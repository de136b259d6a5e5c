#ifndef PADDLE_UPDATE_H
#define PADDLE_UPDATE_H

#include "tensor.h"
#include "trainer.h"

/* All return 0, or -1 with an error. Arguments are checked before anything is sent. */

/** Makes one step of each parameter's optimizer; `learning_rate` NULL: with its own rate. */
int ps_send_gradients(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                      int total, const double *learning_rate);

/** Overwrites values. */
int ps_set_values(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                  int total);

/** Makes a host write the model. */
int ps_save_model(const char *function, struct ps_trainer *trainer, const char *path);

#endif
