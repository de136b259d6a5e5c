#ifndef WIRE_IO_THREAD_H
#define WIRE_IO_THREAD_H

#include <pserver_errors.h>
#include <pthread.h>
#include <stdbool.h>

#include "wire/timers.h"

/** Something to run on the I/O thread. It belongs to whoever posts it, and stays until it has run. */
struct ps_io_work {
  void (*run)(void *context);
  void *context;
  bool is_posted;
  struct ps_io_work *next;
};

/**
 * The thread that owns the state of one client. Other threads hand it work. `lock` guards the fields up to
 * `is_stopping`, and what its users say; it is held for a few instructions only, never while cnats is
 * called.
 */
struct ps_io_thread {
  pthread_mutex_t lock;
  struct ps_io_work *first;
  struct ps_io_work *last;
  bool is_stopping;
  /** Signalled when there is work. */
  pthread_cond_t woken;

  pthread_t thread;
  bool has_thread;
  /** On the I/O thread. */
  struct ps_timers timers;
  /** Does a part of what can wait until nothing else is due; false if there is nothing. NULL: never is. */
  bool (*run_idle)(void *context);
  void *idle_context;
};

/** Prepares the thread, which ps_io_start() starts. INTERNAL if the system has no room for it. */
pserver_status ps_io_init(struct ps_io_thread *io);
pserver_status ps_io_start(struct ps_io_thread *io);

/** Ends the thread after it has run what was posted. Posted from then on is never run. */
void ps_io_stop(struct ps_io_thread *io);
void ps_io_release(struct ps_io_thread *io);

/** Has the thread run something, after what was posted before. Lock held, or not. */
void ps_io_post_locked(struct ps_io_thread *io, struct ps_io_work *work);
void ps_io_post(struct ps_io_thread *io, struct ps_io_work *work);

/** Takes work back that has not run yet. Lock held. */
void ps_io_unpost_locked(struct ps_io_thread *io, struct ps_io_work *work);

/** Runs what was posted and what is due, or else a part of what can wait; false if there was nothing. */
bool ps_io_run(struct ps_io_thread *io);

#endif
