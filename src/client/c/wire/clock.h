#ifndef WIRE_CLOCK_H
#define WIRE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#include "core/times.h"

/** Pauses between attempts: the first, and the longest. */
#define PS_PAUSE_MS 50
#define PS_PAUSE_MS_MAX 500

/** Milliseconds of a clock that never goes back. */
int64_t ps_now_ms(void);

/** A condition that waits by the clock of ps_now_ms(). Nonzero if the system has no room for it. */
int ps_condition_init(pthread_cond_t *condition);

/** Waits, mutex held, until the condition is signalled or the time has come. */
void ps_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms);

/** Random bits: distinct in every process and thread. */
uint64_t ps_random_bits(void);

/** The delay after `delay_ms`: doubled up to `max_ms`. */
int64_t ps_doubled_ms(int64_t delay_ms, int64_t max_ms);

/** The delay less up to a quarter, so that those that failed together do not come back together. */
int64_t ps_varied_ms(int64_t delay_ms);

#endif
