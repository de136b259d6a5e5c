#ifndef CORE_OUTBOX_H
#define CORE_OUTBOX_H

#include "core/call-references.h"
#include "core/commands.h"
#include "core/in-flight.h"
#include "core/outcome-tracker.h"
#include "core/positions.h"
#include "core/shard-window.h"

/** Dependencies of ps_outbox; what they refer to lives as long as the outbox. */
struct ps_outbox_deps {
  const struct ps_outbox_commands *commands;
  const struct ps_outbox_listener *listener;
  struct ps_positions *positions;
  /** Bytes of elements that may be without a PubAck. */
  size_t in_flight_bytes_max;
  /** Numbers of one shard that may be open. */
  size_t window_records;
};

/**
 * Publishes journal records and learns what became of them. It reads no clock: every event that needs the
 * time has it as `now_ms`.
 *
 * A waiting update becomes a message only when both windows admit it: that of bytes in flight, and that
 * of numbers of its shard. A record is repeated until its PubAck and no longer: after a reconnect, because
 * what is published while disconnected is lost; after 2 s of silence; and, with growing delays, when the
 * journal is full or nobody has made it yet. Repeats are harmless: a shard applies each number once.
 *
 * An update is waiting, or has an open number, or has its fate. In flight are records without a PubAck,
 * among them those given up, until the broker has answered or cannot have them any more.
 *
 * Events come one after the other: while one is being taken only the events that a command allows may be
 * raised, ps_outbox_pause() from `session_over`, and any from `call_over`. Memory is needed by
 * ps_outbox_send() alone, and by ps_outbox_stored() for an error.
 */
struct ps_outbox {
  struct ps_outbox_deps deps;
  struct ps_shard_window *windows[PS_SHARDS_MAX];
  /** The windows in the order of their turns. */
  struct ps_shard_window *turns[PS_SHARDS_MAX];
  size_t turn_count;
  struct ps_in_flight in_flight;
  struct ps_outcome_tracker tracker;
  /** Calls that are over and are to be told, the first of them first. */
  struct ps_update_call *first_over;
  struct ps_update_call *last_over;
  struct ps_call_references references;
  struct ps_failure *session_end;
  size_t turn;
  size_t waiting;
  size_t open;
  uint64_t session;
  uint64_t send_number;
  int64_t last_ack_at_ms;
  bool is_paused;
  bool is_connected;
  bool has_timer;
};

/** An outbox that waits for its first session; NULL if there is no memory. */
struct ps_outbox *ps_outbox_new(const struct ps_outbox_deps *deps);

/** Frees it and what it holds, without any command; every call that was sent must be over. */
void ps_outbox_destroy(struct ps_outbox *outbox);

/**
 * A call has updates to send. `call_over` is told once each has its fate: at once if it has none, or if
 * its `end` is known already. False, and nothing changed, if there is no memory.
 */
bool ps_outbox_send(struct ps_outbox *outbox, struct ps_update_call *call, int64_t now_ms);

/** A call has ended, by its deadline for instance: what of it is pending is given up. */
void ps_outbox_end_call(struct ps_outbox *outbox, struct ps_update_call *call,
                        struct ps_failure *reason, int64_t now_ms);

/** A session has begun: numbers start over. */
void ps_outbox_start(struct ps_outbox *outbox, uint64_t session, int64_t now_ms);

/** The session has ended: nothing is published until ps_outbox_start(). */
void ps_outbox_pause(struct ps_outbox *outbox);

/**
 * The broker has stored a record. False, and nothing changed, if there is no memory to say that it is in
 * the journal of another shard.
 */
bool ps_outbox_stored(struct ps_outbox *outbox, uint64_t slot, uint64_t serial, unsigned shard,
                      struct ps_position at, int64_t now_ms);

/** The broker has not stored a record; the same can be stored later if `is_retryable`. */
void ps_outbox_refused(struct ps_outbox *outbox, uint64_t slot, uint64_t serial,
                       struct ps_failure *failure, bool is_retryable, int64_t now_ms);

/** The `publish` or `repeat` of an update has failed; raised before that command returns. */
void ps_outbox_publish_failed(struct ps_outbox *outbox, struct ps_block_update *update,
                              struct ps_failure *failure);

/**
 * The last `publish` or `repeat` of an update was not handed to the connection, and will not be: it does not
 * count as sent. Raised before `release` returns, or between events; a record that is still open is repeated
 * like any other without a PubAck.
 */
void ps_outbox_withdrawn(struct ps_block_update *update);

/** An owner tells outcomes; `is_reply` if they were asked for. Those of another session do not count. */
void ps_outbox_answered(struct ps_outbox *outbox, const struct ps_answers *answers, bool is_reply,
                        int64_t now_ms);

/** A question for outcomes was answered with an error; `retry_after_ms` is how long it says to wait. */
void ps_outbox_ask_failed(struct ps_outbox *outbox, unsigned shard, struct ps_failure *failure,
                          int64_t retry_after_ms, int64_t now_ms);

/** The broker refused what was published for an update; ignored if that is in flight no more. */
void ps_outbox_denied(struct ps_outbox *outbox, struct ps_block_update *update,
                      struct ps_failure *failure, int64_t now_ms);

/** The connection is lost: what is published from now on does not arrive. */
void ps_outbox_disconnected(struct ps_outbox *outbox);

/** The connection is back. */
void ps_outbox_reconnected(struct ps_outbox *outbox, int64_t now_ms);

/** The time of `set_timer` has come. */
void ps_outbox_tick(struct ps_outbox *outbox, int64_t now_ms);

/** A question for outcomes could not be published: the records asked for are given up. */
void ps_outbox_ask_not_published(struct ps_outbox *outbox, unsigned shard, const uint64_t *numbers,
                                 size_t count, struct ps_failure *failure);

#endif
