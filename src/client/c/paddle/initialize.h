#ifndef PADDLE_INITIALIZE_H
#define PADDLE_INITIALIZE_H

#include <stdbool.h>

#include "tensor.h"
#include "trainer.h"

/* All return 0, or -1 with an error. */

/** Asks to initialize; returns 1 if selected. If it `waits`, returns 0 only after another trainer has done
 * so. */
int ps_begin(const char *function, struct ps_trainer *trainer, bool waits);

/** The result of initializing a job that is initialized already. */
enum ps_repetition { PS_REPETITION_FAILS, PS_REPETITION_SUCCEEDS };

/** Stores the first values of a parameter. */
int ps_initialize(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                  const pserver_config *config, enum ps_repetition repetition);

/** Ends the initialization. */
int ps_finish(const char *function, struct ps_trainer *trainer, enum ps_repetition repetition);

/**
 * If another trainer was initializing when this one asked, waits until the job is initialized. -1 also if
 * this trainer is selected meanwhile, because the other one has died.
 */
int ps_await_ready(const char *function, struct ps_trainer *trainer);

#endif
