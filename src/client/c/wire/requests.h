#ifndef WIRE_REQUESTS_H
#define WIRE_REQUESTS_H

#include "core/failure.h"
#include "core/queue.h"
#include "wire/connection.h"
#include "wire/envelope.h"

struct ps_ask_group;

enum ps_ask_state { PS_ASK_WAITING, PS_ASK_OPEN, PS_ASK_DONE };

/**
 * A request to hosts. It is repeated after 1 s, 2 s and then every 4 s until an answer comes, and retried
 * after errors that can pass; the first answer counts. Its functions run on the I/O thread, except
 * `on_progress`.
 */
struct ps_ask {
  char subject[PS_SUBJECT_SIZE];
  /** Writes the entries of the message, and its tensor bytes, if any, each time it is sent. */
  pserver_status (*write)(struct ps_ask *ask, struct ps_draft *draft);
  /** Reads a message of the answer. */
  pserver_status (*read)(struct ps_ask *ask, const struct ps_message *message);
  /** Sets the last error when nobody listens to the subject; returns its code. */
  pserver_status (*nobody)(struct ps_ask *ask);
  /**
   * Reacts to an error that is not retried: returns OK to send the request again at once, otherwise the
   * status to fail with. NULL: the request fails with the error. `message` is NULL if no host answered, or
   * if the broker denied the request, which then fails in any case.
   */
  pserver_status (*refused)(struct ps_ask *ask, pserver_status status, const struct ps_message *message);
  /** Called on the calling thread after `read` has set `goes_on`; may be NULL. */
  void (*on_progress)(struct ps_ask *ask);
  void *context;
  /** How long errors that can pass are retried; 0: until the call ends. */
  int64_t retry_ms;
  /** The same while nobody listens to the subject; 0: as `retry_ms`. */
  int64_t nobody_retry_ms;
  /** Whether it is never repeated, because carrying it out twice would be wrong. */
  bool is_sent_once;
  /** Set by `read`: further messages of the answer follow. */
  bool goes_on;
  /** Set by `read`: messages of the answer are missing, so the request is sent again at once. */
  bool is_incomplete;
  /** The reply subject; valid in `write`. */
  const char *reply;
  /** Bytes of its answer that count in the window of replies; 0: none. */
  size_t window_bytes;

  /** Set by ps_requests. */
  struct ps_ask_group *group;
  enum ps_ask_state state;
  int64_t started_ms;
  struct ps_timer timer;
  int64_t repeat_ms;
  int64_t pause_ms;
};

/** Requests of one call, as many under way as the window permits. The first error ends all of them. */
struct ps_ask_group {
  struct ps_ask *asks;
  size_t count;
  /** When the owner ends the group by ps_ask_group_end(). */
  int64_t ends_at_ms;
  /** Called once: with OK when all requests are answered, otherwise with the last error. May free the
   * group. */
  void (*over)(struct ps_ask_group *group, pserver_status status);
  /** Makes the calling thread call `on_progress` of the requests; may be NULL. */
  void (*on_progress)(struct ps_ask_group *group);
  void *context;

  /** Set by ps_requests. */
  struct ps_requests *requests;
  size_t slot;
  uint64_t first_token;
  /** Index of the next request to begin, and the number of requests that are not answered. */
  size_t next;
  size_t missing;
  struct ps_queue_link place;
  /** The last error that was retried; NULL if none. */
  struct ps_failure *obstacle;
};

/** The requests of one client that are under way, on its I/O thread. */
struct ps_requests {
  struct ps_connection *connection;
  /** The maximum number of bytes that requests under way may ask for, and their present number. */
  size_t window_max;
  size_t window_bytes;
  /** Groups by slot, which is part of the reply subject; and those that wait for the window, in turn. */
  struct ps_ask_group **slots;
  size_t slot_count;
  struct ps_queue waiting;
  uint64_t tokens;
};

/** Begins the requests of a group, except those that are done already. On the I/O thread. */
void ps_ask_group_begin(struct ps_requests *requests, struct ps_ask_group *group);

/** Ends a group that is under way with the last error, which calls `over`. On the I/O thread. */
void ps_ask_group_end(struct ps_ask_group *group, pserver_status status);

/** Returns the milliseconds left for an answer, at least 0. */
int64_t ps_ask_group_remaining_ms(const struct ps_ask_group *group);

/** Returns the ms a host may hold a request of the group before it answers: less than until its repeat. */
uint64_t ps_ask_group_wait_ms(const struct ps_ask_group *group);

/** Takes a reply; slot and token are from its subject. On the I/O thread, as the functions below. */
void ps_on_reply(struct ps_requests *requests, uint64_t slot, uint64_t token, natsMsg *message);

/** The broker denied publishing to a subject. */
void ps_requests_denied(struct ps_requests *requests, const char *subject);

/** The connection is back: sends all requests again. */
void ps_requests_reconnected(struct ps_requests *requests);

void ps_requests_release(struct ps_requests *requests);

/** Whether the client retries a request after this error. */
bool ps_is_worth_retrying(pserver_status status);

#endif
