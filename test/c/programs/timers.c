/* Sets, clears and runs timers at random, and compares them with a list that is searched linearly. */
#include "wire/wire.h"

#include <pserver.h>
#include <stdbool.h>
#include <stddef.h>

#include "expect.h"

#define TIMERS 40
#define ROUNDS 200000
#define TIMES 50

/** For each timer: when it is due, PS_NEVER_MS if it is not set, and how often it was due. */
static struct ps_timer timers[TIMERS];
static int64_t due_ms[TIMERS];
static int64_t now_ms;
static struct ps_timers heap;
static int64_t last_due_ms;

static unsigned next_random(void) {
  static uint64_t state = 42;
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(state >> 33);
}

static void set(size_t i, int64_t at_ms) {
  due_ms[i] = at_ms;
  ps_timer_set(&heap, &timers[i], at_ms);
}

/** Checks that the timer is due and the earliest; some set themselves or another timer again. */
static void on_due(void *context) {
  size_t i = (size_t)((struct ps_timer *)context - timers);
  EXPECT(due_ms[i] <= now_ms && due_ms[i] >= last_due_ms);
  last_due_ms = due_ms[i];
  due_ms[i] = PS_NEVER_MS;
  if (next_random() % 4 == 0) set(i, now_ms + 1 + next_random() % TIMES);
  if (next_random() % 4 == 0) set(next_random() % TIMERS, now_ms + 1 + next_random() % TIMES);
}

static int64_t first_due(void) {
  int64_t first = PS_NEVER_MS;
  for (size_t i = 0; i < TIMERS; i++) first = due_ms[i] < first ? due_ms[i] : first;
  return first;
}

int main(void) {
  for (size_t i = 0; i < TIMERS; i++) {
    timers[i] = (struct ps_timer){.due = on_due, .context = &timers[i]};
    due_ms[i] = PS_NEVER_MS;
  }
  for (int round = 0; round < ROUNDS; round++) {
    size_t i = next_random() % TIMERS;
    set(i, next_random() % 3 == 0 ? PS_NEVER_MS : now_ms + next_random() % TIMES);
    EXPECT(ps_timers_next_ms(&heap) == first_due());
    if (next_random() % 8 != 0) continue;
    now_ms += next_random() % 10;
    bool is_any = first_due() <= now_ms;
    last_due_ms = 0;
    EXPECT(ps_timers_run(&heap, now_ms) == is_any);
    EXPECT(first_due() > now_ms);
  }
  return 0;
}
