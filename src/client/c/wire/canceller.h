#ifndef WIRE_CANCELLER_H
#define WIRE_CANCELLER_H

#include <pserver.h>
#include <pthread.h>
#include <stdbool.h>

/** A wait of a thread that the canceller of the thread can end. */
struct ps_cancellable {
  /** NULL: the thread uses none. */
  pserver_canceller *canceller;
  pthread_mutex_t *lock;
  pthread_cond_t *woken;
  /** Stays true when the canceller is rearmed. Guarded by `lock`. */
  bool is_cancelled;
  struct ps_cancellable *next;
};

/**
 * Makes the canceller of this thread, if it uses one, signal `woken` when it is cancelled, until
 * ps_cancellable_leave(). Call neither with `lock` held: a canceller takes it while it holds its own.
 */
void ps_cancellable_enter(struct ps_cancellable *entered, pthread_mutex_t *lock, pthread_cond_t *woken);
void ps_cancellable_leave(struct ps_cancellable *entered);

/** Whether this thread uses a canceller. */
bool ps_uses_canceller(void);

#endif
