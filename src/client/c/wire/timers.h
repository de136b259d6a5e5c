#ifndef WIRE_TIMERS_H
#define WIRE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/clock.h"

/** Something to do at a time. It belongs to whoever sets it, and needs no memory. All zeros: not set. */
struct ps_timer {
  void (*due)(void *context);
  void *context;
  int64_t at_ms;
  /** The first of those that are due later, and the next and the one before with the same parent. */
  struct ps_timer *child;
  struct ps_timer *next;
  /** The parent of a first child; itself for the root; NULL if the timer is not set. */
  struct ps_timer *before;
};

/** Timers that are set, in a pairing heap: setting takes constant time, clearing O(log n) amortized. */
struct ps_timers {
  struct ps_timer *root;
};

/** Has the timer come due at this time instead of any set before; PS_NEVER_MS: never. */
void ps_timer_set(struct ps_timers *timers, struct ps_timer *timer, int64_t at_ms);

/** When the first timer is due; PS_NEVER_MS if none is set. */
int64_t ps_timers_next_ms(const struct ps_timers *timers);

/** Runs the timers that are due by now; false if none is. */
bool ps_timers_run(struct ps_timers *timers, int64_t now_ms);

#endif
