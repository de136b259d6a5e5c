#include "wire/wire.h"

#include <stdlib.h>

/* Cancellers, by which one thread ends the calls of others. Each thread chooses the one that its calls
 * obey. */

struct pserver_canceller {
  pthread_mutex_t lock;
  bool is_cancelled;
  /** What the threads that use it are waiting for. */
  struct ps_cancellable *waiting;
};

static _Thread_local pserver_canceller *used;

pserver_status pserver_canceller_new(pserver_canceller **canceller) {
  if (canceller == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_canceller_new: expected a pointer; received NULL");
  }
  pserver_canceller *made = calloc(1, sizeof *made);
  if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
    free(made);
    return ps_fail(PSERVER_ERR_INTERNAL, "pserver_canceller_new: no memory for a canceller");
  }
  *canceller = made;
  return PSERVER_OK;
}

void pserver_canceller_free(pserver_canceller *canceller) {
  if (canceller == NULL) return;
  if (used == canceller) used = NULL;
  pthread_mutex_destroy(&canceller->lock);
  free(canceller);
}

void pserver_cancel(pserver_canceller *canceller) {
  if (canceller == NULL) return;
  pthread_mutex_lock(&canceller->lock);
  canceller->is_cancelled = true;
  for (struct ps_cancellable *each = canceller->waiting; each != NULL; each = each->next) {
    /* Without the lock the signal could come between a thread's check and its wait, and be lost. */
    pthread_mutex_lock(each->lock);
    each->is_cancelled = true;
    pthread_cond_broadcast(each->woken);
    pthread_mutex_unlock(each->lock);
  }
  pthread_mutex_unlock(&canceller->lock);
}

void pserver_canceller_rearm(pserver_canceller *canceller) {
  if (canceller == NULL) return;
  pthread_mutex_lock(&canceller->lock);
  canceller->is_cancelled = false;
  pthread_mutex_unlock(&canceller->lock);
}

void pserver_use_canceller(pserver_canceller *canceller) { used = canceller; }

void ps_cancellable_enter(struct ps_cancellable *entered, pthread_mutex_t *lock, pthread_cond_t *woken) {
  *entered = (struct ps_cancellable){.canceller = used, .lock = lock, .woken = woken};
  if (used == NULL) return;
  pthread_mutex_lock(&used->lock);
  entered->is_cancelled = used->is_cancelled;
  entered->next = used->waiting;
  used->waiting = entered;
  pthread_mutex_unlock(&used->lock);
}

void ps_cancellable_leave(struct ps_cancellable *entered) {
  pserver_canceller *canceller = entered->canceller;
  if (canceller == NULL) return;
  pthread_mutex_lock(&canceller->lock);
  struct ps_cancellable **link = &canceller->waiting;
  while (*link != entered) link = &(*link)->next;
  *link = entered->next;
  pthread_mutex_unlock(&canceller->lock);
}
