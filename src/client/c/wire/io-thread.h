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

/** What the I/O thread does with its socket. */
struct ps_io_handler {
  void *context;
  /** The socket can be read or written. */
  void (*ready)(void *context, bool is_readable, bool is_writable);
  /** Nothing else is due: writes what was published since. */
  void (*flush)(void *context);
};

/**
 * The thread that owns the state of one client, and reads and writes its socket. Other threads hand it
 * work. `lock` guards the fields up to `socket`, and what its users say; it is held for a few
 * instructions only, never while cnats is called.
 */
struct ps_io_thread {
  pthread_mutex_t lock;
  struct ps_io_work *first;
  struct ps_io_work *last;
  /** Whether the thread waits, so that it has to be woken. */
  bool is_waiting;
  bool is_stopping;
  /** What the thread waits for beside work: -1 for no socket. */
  int socket;
  bool wants_write;

  /** Wakes the thread. */
  int wake_fd;
  pthread_t thread;
  bool has_thread;
  struct ps_io_handler handler;
  /** On the I/O thread. */
  struct ps_timers timers;
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

/** Has the thread wait for this socket, -1 for none, to be read, and maybe to be written. Lock held. */
void ps_io_watch_locked(struct ps_io_thread *io, int socket, bool wants_write);

/** Runs what was posted and what is due. On the I/O thread. */
void ps_io_run_due(struct ps_io_thread *io);

#endif
