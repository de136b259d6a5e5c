#ifndef CALLS_CALL_H
#define CALLS_CALL_H

#include <nats/nats.h>
#include <pserver.h>
#include <pthread.h>

#include "calls/canceller.h"

struct client;

/** A message for a call, or the news that the broker refused what was published to a subject. */
struct mail {
  struct mail *next;
  uint64_t token;
  natsMsg *message;
  char *denied_subject;
};

/**
 * One call under way, on the stack of the thread that makes it. It ends when its time is over, the client
 * dies, or the thread's canceller is cancelled, and everything that it waits for ends with it.
 */
struct call {
  struct client *client;
  const char *what;
  int64_t timeout_ms;
  int64_t ends_at_ms;
  uint64_t number;
  /** Whether it waits until the window of bytes admits more. */
  bool waits_for_window;
  /** Whether the client makes it itself; pserver_close() does not wait for it. */
  bool is_inner;
  /** Whether it goes on after the client has failed, as leaving the job does. */
  bool is_last;
  pthread_cond_t woken;
  struct cancellable cancellable;
  struct mail *mail;
  struct mail *last_mail;
  size_t mail_count;
  struct call *next;
};

/**
 * Begins a call on a handle. `timeout_ms` PSERVER_TIMEOUT_DEFAULT stands for `default_ms`, or for the
 * client's timeout if that is 0. CLOSED, BAD_VALUE, or the error that ended the client.
 */
pserver_status ps_call_begin(struct call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms);

/** Ends it; returns the status. */
pserver_status ps_call_end(struct call *call, pserver_status status);

/** The same for calls of the client's own. */
pserver_status ps_call_begin_inner(struct call *call, struct client *client, const char *what,
                                   int64_t timeout_ms);
void ps_call_end_inner(struct call *call);

/** OK while the call may go on, else why not. Lock held. */
pserver_status ps_call_check(struct call *call);

/** Waits for news until a time, at most until the call ends. Lock held. */
void ps_call_wait(struct call *call, int64_t until_ms);

/** Waits for so long; what has ended the call, if that comes before. Lock not held. */
pserver_status ps_call_sleep(struct call *call, int64_t delay_ms);

/** Milliseconds left, never below 0. */
int64_t ps_call_remaining_ms(const struct call *call);

/** Lock held. */
void ps_call_wake(struct call *call);
void ps_wake_all(struct client *client);
void ps_wake_window_waiters(struct client *client);

/** Puts mail into a call's box; the message belongs to it. Lock held. */
void ps_call_deliver(struct client *client, uint64_t call_number, uint64_t token, natsMsg *message);

/** Tells every call that the broker refused a subject. Lock held. */
void ps_deliver_denial(struct client *client, const char *subject);

/** The oldest mail with a token from `first` on, `count` of them, or with a denial; NULL if there is
 * none. Lock held; to be freed with ps_mail_free(). */
struct mail *ps_call_take_mail(struct call *call, uint64_t first, uint64_t count);
void ps_mail_free(struct mail *mail);

#endif
