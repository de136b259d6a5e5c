#ifndef WIRE_REQUESTS_H
#define WIRE_REQUESTS_H

#include "core/failure.h"
#include "wire/connection.h"
#include "wire/envelope.h"

struct ps_ask_group;

enum ps_ask_state { PS_ASK_WAITING, PS_ASK_OPEN, PS_ASK_DONE };

/**
 * A question to hosts. It is repeated after 1 s, 2 s and then every 4 s, and asked again after answers
 * that are worth retrying; the first answer counts. Its functions run on the I/O thread.
 */
struct ps_ask {
  char subject[PS_SUBJECT_SIZE];
  /** Writes the entries of the message, anew for each sending; and the bytes after them, if any. */
  pserver_status (*write)(struct ps_ask *ask, struct ps_draft *draft);
  /** Reads the answer, once. */
  pserver_status (*read)(struct ps_ask *ask, const struct ps_message *message);
  /** Makes the last error when no host listens. */
  pserver_status (*nobody)(struct ps_ask *ask);
  /** Reacts to an error in an answer: returns OK to ask again at once, else the status to fail with. NULL
   * fails with the error. `message` is NULL if no host answered, or if the broker refused the question,
   * which is then not asked again. */
  pserver_status (*refused)(struct ps_ask *ask, pserver_status status, const struct ps_message *message);
  /** Runs on the calling thread after `read` has said that more follow; NULL: nothing does. */
  void (*on_progress)(struct ps_ask *ask);
  void *context;
  /** How long errors that are worth retrying are retried; 0 for as long as the call lasts. */
  int64_t retry_ms;
  /** The same while no host listens; 0: as `retry_ms`. */
  int64_t nobody_retry_ms;
  /** Whether it is never repeated: doing it twice would be wrong. */
  bool is_sent_once;
  /** Set by `read`: the message is not all of the answer; more follow. */
  bool goes_on;
  /** Set by `read`: messages of the answer are missing, so it is asked again at once. */
  bool is_incomplete;
  /** Where its answers come to; valid in `write`. */
  const char *reply;
  /** What it counts in the window of replies; 0 for nothing. */
  size_t window_bytes;

  /** State of the requests. */
  struct ps_ask_group *group;
  enum ps_ask_state state;
  int64_t started_ms;
  struct ps_timer timer;
  int64_t repeat_ms;
  int64_t pause_ms;
};

/** Questions that are asked together, as many at once as the window admits; over with the first error. */
struct ps_ask_group {
  struct ps_ask *asks;
  size_t count;
  /** When whoever asks ends it by ps_asking_end(). */
  int64_t ends_at_ms;
  /** OK once each question has its answer, else its last error. May free the asking. */
  void (*over)(struct ps_ask_group *group, pserver_status status);
  /** Has the calling thread run the `news` of its questions; NULL if there is none. */
  void (*on_progress)(struct ps_ask_group *group);
  void *context;

  /** State of the requests. */
  struct ps_requests *requests;
  size_t slot;
  uint64_t first_token;
  /** Questions from `next` on have not begun, and so many are not done. */
  size_t next;
  size_t missing;
  bool is_waiting;
  struct ps_ask_group *next_waiting;
  /** The last error that was worth retrying; NULL for none. */
  struct ps_failure *obstacle;
};

/** The requests under way of one client, on its I/O thread. */
struct ps_requests {
  struct ps_connection *connection;
  /** The window of replies, and the bytes that requests under way ask for. */
  size_t window_max;
  size_t window_bytes;
  /** By slot, which a reply names; and those with questions that wait for the window, in turn. */
  struct ps_ask_group **slots;
  size_t slot_count;
  struct ps_ask_group *first_waiting;
  struct ps_ask_group *last_waiting;
  uint64_t tokens;
};

/** Begins to ask; questions that are done already are left out. On the I/O thread. */
void ps_ask_group_begin(struct ps_requests *requests, struct ps_ask_group *group);

/** Ends it, if it is under way, by an error, which is the last one: `over` is told. On the I/O thread. */
void ps_ask_group_end(struct ps_ask_group *group, pserver_status status);

/** Milliseconds left for an answer, never below 0. */
int64_t ps_ask_group_remaining_ms(const struct ps_ask_group *group);

/** How long a host may hold a request until it can answer: less than the time after which it is repeated. */
uint64_t ps_ask_group_wait_ms(const struct ps_ask_group *group);

/** A reply to a question: the numbers in its subject. On the I/O thread, as below. */
void ps_on_reply(struct ps_requests *requests, uint64_t slot, uint64_t token, natsMsg *message);

/** The broker refused what was published to a subject. */
void ps_requests_denied(struct ps_requests *requests, const char *subject);

/** The connection is back: asks all again. */
void ps_requests_reconnected(struct ps_requests *requests);

void ps_requests_release(struct ps_requests *requests);

/** Whether the same request can succeed after a pause. */
bool ps_is_worth_retrying(pserver_status status);

#endif
