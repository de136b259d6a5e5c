#ifndef WIRE_IO_THREAD_H
#define WIRE_IO_THREAD_H

#include <pserver_errors.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/queue.h"
#include "wire/timers.h"

/** Work for the I/O thread. Who posts it owns it, and keeps it until it has run. */
struct ps_io_work {
  void (*run)(void *context);
  void *context;
  struct ps_queue_link place;
};

/**
 * The thread that owns the state of one client. Other threads post work to it. `lock` guards the fields up
 * to `is_stopping`, and fields elsewhere whose comments say so; it is held for a few instructions only,
 * never while cnats is called.
 */
struct ps_io_thread {
  pthread_mutex_t lock;
  struct ps_queue posted;
  bool is_stopping;
  /** Signalled when there is work. */
  pthread_cond_t woken;

  pthread_t thread;
  bool has_thread;
  /** Used on the I/O thread only. */
  struct ps_timers timers;
  /** Does one piece of low-priority work when nothing else is due; false if there is none. May be NULL. */
  bool (*run_idle)(void *context);
  void *idle_context;
};

/** Initializes the state of a thread, which ps_io_start() starts. INTERNAL. */
pserver_status ps_io_init(struct ps_io_thread *io);
pserver_status ps_io_start(struct ps_io_thread *io);

/** Ends the thread after it has run all posted work. Work posted later never runs. */
void ps_io_stop(struct ps_io_thread *io);
void ps_io_release(struct ps_io_thread *io);

/** Posts work, which runs after work posted before. The first is called with the lock held. */
void ps_io_post_locked(struct ps_io_thread *io, struct ps_io_work *work);
void ps_io_post(struct ps_io_thread *io, struct ps_io_work *work);

/** Removes posted work that has not run yet. Called with the lock held. */
void ps_io_unpost_locked(struct ps_io_thread *io, struct ps_io_work *work);

/** Runs posted work and due timers, or else low-priority work once; false if there was nothing to run. */
bool ps_io_run(struct ps_io_thread *io);

#endif
