#ifndef WIRE_CLOCK_H
#define WIRE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#include "core/times.h"

/** The first and the longest pause between attempts. */
#define PS_PAUSE_MS 50
#define PS_PAUSE_MS_MAX 500

/** Returns the milliseconds of a clock that never goes back. */
int64_t ps_now_ms(void);

/** Initializes a condition that uses the clock of ps_now_ms(). Returns an error number, or 0. */
int ps_condition_init(pthread_cond_t *condition);

/** Waits, with the mutex held, until the condition is signalled or the time has come. */
void ps_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms);

/** Returns random bits, which differ between processes and threads. */
uint64_t ps_random_bits(void);

/** Returns the delay after `delay_ms`: twice as long, at most `max_ms`. */
int64_t ps_doubled_ms(int64_t delay_ms, int64_t max_ms);

/** Returns the delay less a random part, up to a quarter, so that clients do not all retry at once. */
int64_t ps_varied_ms(int64_t delay_ms);

#endif
