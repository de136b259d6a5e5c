#include "wire/wire.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Monotonic time, waiting until a time, and random numbers. */

int64_t ps_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int ps_condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  int error = pthread_condattr_init(&attributes);
  if (error != 0) return error;
  error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  if (error == 0) error = pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
  return error;
}

void ps_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms) {
  if (until_ms == PS_NEVER_MS) {
    pthread_cond_wait(condition, mutex);
    return;
  }
  struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = (until_ms % 1000) * 1000000};
  pthread_cond_timedwait(condition, mutex, &until);
}

uint64_t ps_random_bits(void) {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) == (ssize_t)sizeof bits) return bits;
  /* Only on a kernel without getrandom. The bits only have to differ; they are not secret. */
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec ^ ((uint64_t)getpid() << 40);
}

int64_t ps_doubled_ms(int64_t delay_ms, int64_t max_ms) {
  return delay_ms * 2 < max_ms ? delay_ms * 2 : max_ms;
}

int64_t ps_varied_ms(int64_t delay_ms) {
  return delay_ms - (int64_t)(ps_random_bits() % (uint64_t)(delay_ms / 4 + 1));
}
