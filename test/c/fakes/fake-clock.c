/* A clock that advances while a thread waits, and an I/O thread that runs meanwhile. */
#include "fake-clock.h"

#include <stdlib.h>

#include "fake-connection.h"

/** Advances a little each time the clock is read, so that a loop that only reads it ends, too. */
#define LOOK_US 20
/** The initial time: not 0, because 0 stands for a time long ago. */
#define START_US (INT64_C(3600) * 1000000)
/** The time that an event takes. */
#define EVENT_US 1000

static int64_t now_us;
static uint64_t bits;
/** The I/O thread; NULL if there is none. */
static struct ps_io_thread *io;

void set_clock(void) {
  now_us = START_US;
  bits = 0;
  io = NULL;
}

int64_t ps_now_ms(void) {
  now_us += LOOK_US;
  return now_us / 1000;
}

int64_t time_ms(void) { return (now_us - START_US) / 1000; }

int ps_condition_init(pthread_cond_t *condition) { return pthread_cond_init(condition, NULL); }

/** Runs the I/O thread or, if it has nothing to do, advances to the next event. */
static void turn(int64_t until_ms) {
  if (io != NULL && ps_io_run(io)) return;
  int64_t event_ms = next_event_ms();
  if (event_ms != PS_NEVER_MS) event_ms += START_US / 1000;
  int64_t next_ms = event_ms < until_ms ? event_ms : until_ms;
  int64_t timer_ms = io == NULL ? PS_NEVER_MS : ps_timers_next_ms(&io->timers);
  if (timer_ms < next_ms) next_ms = timer_ms;
  /* A wait without a deadline, although nothing can happen any more, is a call that never returns. */
  if (next_ms == PS_NEVER_MS) abort();
  if (next_ms * 1000 > now_us) now_us = next_ms * 1000;
  if (event_ms > next_ms) return;
  happen();
  now_us += EVENT_US;
}

void ps_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms) {
  (void)condition;
  pthread_mutex_unlock(mutex);
  turn(until_ms);
  pthread_mutex_lock(mutex);
}

void run_for(int64_t duration_ms) {
  int64_t until_ms = now_us / 1000 + duration_ms;
  while (now_us / 1000 < until_ms) turn(until_ms);
}

void run_until_lost(const struct ps_client *client) {
  while (client->calls.error.code == PSERVER_OK) turn(PS_NEVER_MS);
}

uint64_t ps_random_bits(void) { return ++bits * UINT64_C(0x9e3779b97f4a7c15); }

int64_t ps_doubled_ms(int64_t delay_ms, int64_t max_ms) {
  return delay_ms * 2 < max_ms ? delay_ms * 2 : max_ms;
}

int64_t ps_varied_ms(int64_t delay_ms) { return delay_ms; }

void nats_Sleep(int64_t sleep_ms) { now_us += sleep_ms * 1000; }

/* The library is compiled or linked with these functions instead of those of the system. */
int fake_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument);
int fake_thread_join(pthread_t thread, void **result);
int fake_thread_detach(pthread_t thread);

/** The first thread of a client is its I/O thread, which runs while other threads wait. */
int fake_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument) {
  (void)attributes;
  *thread = pthread_self();
  if (io == NULL) io = argument;
  else run(argument);
  return 0;
}

int fake_thread_join(pthread_t thread, void **result) {
  (void)thread;
  (void)result;
  while (io != NULL && ps_io_run(io)) continue;
  io = NULL;
  return 0;
}

int fake_thread_detach(pthread_t thread) {
  (void)thread;
  return 0;
}
