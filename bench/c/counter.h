#ifndef COUNTER_H
#define COUNTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** Time limit of waits, longer than anything that is measured. */
#define WAIT_MAX_MS 60000

/** A count that one thread raises and another waits for. */
struct counter {
  pthread_mutex_t lock;
  pthread_cond_t raised;
  uint64_t value;
  /** Time by machine_ms() at which it was last set or raised. */
  double raised_ms;
};

#define COUNTER_INITIALIZER {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}

void counter_set(struct counter *counter, uint64_t value);

/** Adds one; returns the new value. */
uint64_t counter_add(struct counter *counter);

/**
 * Waits until the count is `value` or more; returns in `raised_ms` when it was last raised. False
 * after WAIT_MAX_MS.
 */
bool counter_wait(struct counter *counter, uint64_t value, double *raised_ms);

#endif
