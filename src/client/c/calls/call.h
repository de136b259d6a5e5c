#ifndef CALLS_CALL_H
#define CALLS_CALL_H

#include <pserver.h>
#include <pthread.h>

#include "wire/canceller.h"
#include "errors/errors.h"
#include "wire/io-thread.h"

struct ps_client;

/** The calls of one client that are under way. Guarded by the lock of its I/O thread. */
struct ps_calls {
  struct ps_io_thread *io;
  /** The error that ended the client; code OK while it works. */
  struct ps_error error;
  /** Whether new calls are refused. */
  bool is_closing;
  struct ps_call *first;
  /** Number of calls that pserver_close() waits for; `idle` is signalled when it becomes 0. */
  unsigned running;
  pthread_cond_t idle;
};

enum ps_call_kind {
  PS_CALL_USUAL,
  /** A call of the client itself: allowed while the client closes, which does not wait for it. */
  PS_CALL_INNER,
  /** A call that only looks at the client: allowed also after the client has failed. */
  PS_CALL_LOOK,
};

/**
 * One call under way, on the stack of its thread. It ends at its deadline, when the client fails, or when the
 * thread's canceller is cancelled; everything that it waits for ends with it.
 */
struct ps_call {
  struct ps_calls *calls;
  struct ps_client *client;
  /** The name of the function, for error texts. */
  const char *what;
  int64_t timeout_ms;
  int64_t ends_at_ms;
  enum ps_call_kind kind;
  /** Whether it continues after the client has failed, as leaving the job does. */
  bool is_last;
  pthread_cond_t woken;
  struct ps_cancellable cancellable;
  struct ps_call *next;
};

/** Work of a call on the I/O thread. It is on the stack of the thread that waits for it. */
struct ps_task {
  /** Begins the task, which is over when ps_task_finish() is called, at once or later. */
  void (*begin)(struct ps_task *task);
  /** Ends the task, because its call has ended; `why` is the last error. The task must be over on return. */
  void (*end)(struct ps_task *task, pserver_status why);
  /** Called on the calling thread after ps_task_note_progress(), once for several of these; may be NULL. */
  void (*on_progress)(struct ps_task *task);

  /** Set by ps_task_run(). */
  struct ps_call *call;
  struct ps_io_work beginning;
  struct ps_io_work ending;
  bool has_progress;
  bool is_ending;
  bool is_over;
  pserver_status status;
  struct ps_error error;
};

pserver_status ps_calls_init(struct ps_calls *calls, struct ps_io_thread *io);
void ps_calls_release(struct ps_calls *calls);

/** Makes all present and later calls fail with this error; only the first error is kept. Lock not held. */
void ps_calls_fail(struct ps_calls *calls, pserver_status code, const char *text);

/** Returns the error that ended the client, as last error; OK while it works. Lock not held. */
pserver_status ps_calls_check(struct ps_calls *calls);

/** Begins a call, if its kind allows that now. CLOSED, ABORTED, or the error that ended the client. */
pserver_status ps_call_enter(struct ps_call *call, struct ps_calls *calls, const char *what,
                             int64_t timeout_ms, enum ps_call_kind kind);
void ps_call_leave(struct ps_call *call);

/** Returns OK while the call may continue, otherwise the reason. On any thread, lock not held. */
pserver_status ps_call_check(struct ps_call *call);

/** Waits for so long; returns early, with an error, if the call ends. */
pserver_status ps_call_sleep(struct ps_call *call, int64_t delay_ms);

/** Returns the milliseconds left, at least 0. */
int64_t ps_call_remaining_ms(const struct ps_call *call);

/** Runs a task on the I/O thread and waits for it. Returns its status, and sets the last error. */
pserver_status ps_task_run(struct ps_call *call, struct ps_task *task);

/** Runs a function that neither blocks nor fails on the I/O thread and waits for it, also after the call
 * has ended. */
void ps_run_on_io_thread(struct ps_call *call, void (*function)(struct ps_client *client, void *context),
                         void *context);

/** Ends a task; unless OK, the last error is the reason. On the I/O thread, which must not use it
 * afterwards. */
void ps_task_finish(struct ps_task *task, pserver_status status);

/** Makes the calling thread call `on_progress`. On the I/O thread. */
void ps_task_note_progress(struct ps_task *task);

#endif
