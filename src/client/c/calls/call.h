#ifndef CALLS_CALL_H
#define CALLS_CALL_H

#include <pserver.h>
#include <pthread.h>

#include "wire/canceller.h"
#include "errors/errors.h"
#include "wire/io-thread.h"

struct ps_client;

/** The calls of one client that are under way. The lock of its I/O thread guards them. */
struct ps_calls {
  struct ps_io_thread *io;
  /** The error that ended the client; code OK while it works. */
  struct ps_error error;
  /** Whether no call may begin any more. */
  bool is_closing;
  struct ps_call *first;
  /** Those of them that pserver_close() waits for, and what is signalled when there is none. */
  unsigned running;
  pthread_cond_t idle;
};

enum ps_call_kind {
  PS_CALL_USUAL,
  /** The client's own: it goes on while the client closes, which does not wait for it. */
  PS_CALL_INNER,
  /** It only looks at the client, also at one that has failed. */
  PS_CALL_LOOK,
};

/**
 * One call under way, on the stack of the thread that makes it. It ends when its time is over, the client
 * dies, or the thread's canceller is cancelled, and everything that it waits for ends with it.
 */
struct ps_call {
  struct ps_calls *calls;
  struct ps_client *client;
  const char *what;
  int64_t timeout_ms;
  int64_t ends_at_ms;
  enum ps_call_kind kind;
  /** Whether it goes on after the client has failed, as leaving the job does. */
  bool is_last;
  pthread_cond_t woken;
  struct ps_cancellable cancellable;
  struct ps_call *next;
};

/** What a call has the I/O thread do, on the stack of the thread that waits for it. */
struct ps_task {
  /** Begins; it is over when ps_task_finish() is called, at once or later. */
  void (*begin)(struct ps_task *task);
  /** The call has ended, which is the last error: the task must be over when this returns. */
  void (*end)(struct ps_task *task, pserver_status why);
  /** Runs on the calling thread after ps_task_tell(), at least once before the task is over; or NULL. */
  void (*on_progress)(struct ps_task *task);

  /** State of ps_task_run(). */
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

/** Ends every call, now and later, with this error; only the first counts. Lock not held. */
void ps_calls_fail(struct ps_calls *calls, pserver_status code, const char *text);

/** The error that ended the client, as last error; OK while it works. Lock not held. */
pserver_status ps_calls_check(struct ps_calls *calls);

/** Begins a call. CLOSED once the client is closing, or the error that ended it, as the kind says. */
pserver_status ps_call_enter(struct ps_call *call, struct ps_calls *calls, const char *what,
                             int64_t timeout_ms, enum ps_call_kind kind);
void ps_call_leave(struct ps_call *call);

/** OK while the call may go on, else why not. On any thread, lock not held. */
pserver_status ps_call_check(struct ps_call *call);

/** Waits for so long; what has ended the call, if that comes before. */
pserver_status ps_call_sleep(struct ps_call *call, int64_t delay_ms);

/** Milliseconds left, never below 0. */
int64_t ps_call_remaining_ms(const struct ps_call *call);

/** Has the I/O thread do something, and waits for it. Its status and last error. */
pserver_status ps_task_run(struct ps_call *call, struct ps_task *task);

/** Has the I/O thread run something that neither waits nor fails, also after the call has ended. */
void ps_run_on_io_thread(struct ps_call *call, void (*function)(struct ps_client *client, void *context), void *context);

/** Ends a task, with the last error unless OK. On the I/O thread, which may use it no more. */
void ps_task_finish(struct ps_task *task, pserver_status status);

/** Has the calling thread run `news`. On the I/O thread. */
void ps_task_note_progress(struct ps_task *task);

#endif
