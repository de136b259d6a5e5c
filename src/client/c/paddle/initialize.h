#ifndef PADDLE_INITIALIZE_H
#define PADDLE_INITIALIZE_H

#include <stdbool.h>

#include "tensor.h"
#include "trainer.h"

/* Each returns 0, or -1 with a message; begin also 1. */

/** Asks to initialize; 1 if selected. With `waits`, 0 only after another trainer has done so. */
int ps_begin(const char *function, struct ps_trainer *trainer, bool waits);

/** What it means to initialize a job that is initialized already. */
enum ps_repetition { PS_REPETITION_FAILS, PS_REPETITION_SUCCEEDS };

/** Stores first values. */
int ps_initialize(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                  const pserver_config *config, enum ps_repetition repetition);

int ps_finish(const char *function, struct ps_trainer *trainer, enum ps_repetition repetition);

/**
 * For who was refused to initialize: waits until the job is initialized. -1 also if this trainer was
 * selected meanwhile, the other one having died.
 */
int ps_await_ready(const char *function, struct ps_trainer *trainer);

#endif
