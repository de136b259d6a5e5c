#ifndef WIRE_TIMERS_H
#define WIRE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/clock.h"

/** A function to call at a time. The caller owns it; setting it allocates no memory. All zeros: not set. */
struct ps_timer {
  void (*due)(void *context);
  void *context;
  int64_t at_ms;
  /** Links of the heap: the first child, which is due later, and the next child of the same parent. */
  struct ps_timer *child;
  struct ps_timer *next;
  /** The previous child of the same parent; the parent, of a first child; itself, of the root; NULL: not
   * set. */
  struct ps_timer *before;
};

/** Timers that are set, in a pairing heap: setting takes constant time, clearing O(log n) amortized. */
struct ps_timers {
  struct ps_timer *root;
};

/** Sets a timer to this time, instead of a time set before; PS_NEVER_MS clears it. */
void ps_timer_set(struct ps_timers *timers, struct ps_timer *timer, int64_t at_ms);

/** Returns when the first timer is due; PS_NEVER_MS if none is set. */
int64_t ps_timers_next_ms(const struct ps_timers *timers);

/** Calls the functions of all timers that are due; false if there are none. */
bool ps_timers_run(struct ps_timers *timers, int64_t now_ms);

#endif
