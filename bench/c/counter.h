#ifndef COUNTER_H
#define COUNTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** Longer than anything that is measured. */
#define PATIENCE_MS 60000

/** A count that one thread raises and another waits for. */
struct counter {
  pthread_mutex_t lock;
  pthread_cond_t raised;
  uint64_t value;
  /** When it was raised last. */
  double raised_ms;
};

#define COUNTER_INITIALIZER {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}

void counter_set(struct counter *counter, uint64_t value);

/** Its value, one higher than it was. */
uint64_t counter_add(struct counter *counter);

/** Waits until it is `value` or more, and tells when it was raised last. False after a minute. */
bool counter_wait(struct counter *counter, uint64_t value, double *raised_ms);

#endif
