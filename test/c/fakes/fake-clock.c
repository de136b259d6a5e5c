/* Time that goes on while somebody waits, and a lease without a thread. */
#include "fake-clock.h"

#include <stdlib.h>

#include "fake-connection.h"

/** A little for every look at the clock: whoever only looks must come to an end, too. */
#define LOOK_US 20
/** The time of a machine that has been up for a while: 0 stands for long ago. */
#define START_US (INT64_C(3600) * 1000000)
/** What an event takes. */
#define EVENT_US 1000

static int64_t now_us;
static uint64_t bits;
static bool is_joining;
static void *(*lease)(void *);
static void *lease_argument;

void set_clock(void) {
  now_us = START_US;
  bits = 0;
  is_joining = false;
}

int64_t ps_now_ms(void) {
  now_us += LOOK_US;
  return now_us / 1000;
}

int64_t time_ms(void) { return (now_us - START_US) / 1000; }

int ps_condition_init(pthread_cond_t *condition) { return pthread_cond_init(condition, NULL); }

/** A wait without an end, for something that cannot happen any more, is a call that never returns. */
void ps_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms) {
  (void)condition;
  struct client *client = broker.client;
  bool must_join = client != NULL && !is_joining && client->session.rejoin_ms > 0 &&
                   client->session.has_thread && !client->session.core.is_stopped;
  if (must_join) {
    /* What the lease's thread would do in this moment. */
    is_joining = true;
    ps_keep_session(client);
    is_joining = false;
    return;
  }
  pthread_mutex_unlock(mutex);
  int64_t event_ms = next_event_ms();
  if (event_ms != NEVER_MS) event_ms += START_US / 1000;
  int64_t next_ms = event_ms < until_ms ? event_ms : until_ms;
  if (next_ms == NEVER_MS) abort();
  if (next_ms * 1000 > now_us) now_us = next_ms * 1000;
  if (event_ms <= until_ms) {
    happen();
    now_us += EVENT_US;
  }
  pthread_mutex_lock(mutex);
}

void run_lease(void) {
  is_joining = true;
  lease(lease_argument);
  is_joining = false;
}

uint64_t ps_random_bits(void) { return ++bits * UINT64_C(0x9e3779b97f4a7c15); }

int64_t ps_doubled_ms(int64_t delay_ms, int64_t max_ms) {
  return delay_ms * 2 < max_ms ? delay_ms * 2 : max_ms;
}

int64_t ps_varied_ms(int64_t delay_ms) { return delay_ms; }

void nats_Sleep(int64_t sleep_ms) { now_us += sleep_ms * 1000; }

/* The library is compiled, or linked, with these names in place of those of the system. */
int fake_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument);
int fake_thread_join(pthread_t thread, void **result);

int fake_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument) {
  (void)attributes;
  lease = run;
  lease_argument = argument;
  *thread = pthread_self();
  return 0;
}

int fake_thread_join(pthread_t thread, void **result) {
  (void)thread;
  (void)result;
  return 0;
}
