/* Counts messages in one thread, while another thread waits for a number of them. */
#include "counter.h"

#include <time.h>

#include "agent.h"

void counter_set(struct counter *counter, uint64_t value) {
  pthread_mutex_lock(&counter->lock);
  counter->value = value;
  counter->raised_ms = machine_ms();
  pthread_cond_signal(&counter->raised);
  pthread_mutex_unlock(&counter->lock);
}

uint64_t counter_add(struct counter *counter) {
  pthread_mutex_lock(&counter->lock);
  uint64_t value = ++counter->value;
  counter->raised_ms = machine_ms();
  pthread_cond_signal(&counter->raised);
  pthread_mutex_unlock(&counter->lock);
  return value;
}

bool counter_wait(struct counter *counter, uint64_t value, double *raised_ms) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += WAIT_MAX_MS / 1000;
  int error = 0;
  pthread_mutex_lock(&counter->lock);
  while (counter->value < value && error == 0) {
    error = pthread_cond_timedwait(&counter->raised, &counter->lock, &until);
  }
  bool is_reached = counter->value >= value;
  *raised_ms = counter->raised_ms;
  pthread_mutex_unlock(&counter->lock);
  return is_reached;
}
