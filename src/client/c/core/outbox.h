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
 * Publishes journal records and learns their outcomes. It reads no clock: events that need the time carry
 * it as `now_ms`, milliseconds of a clock that never goes back.
 *
 * A waiting update is published once both the window of bytes in flight and the window of its shard's
 * numbers permit it. Its record is repeated until its PubAck and no longer: after a reconnect, because what
 * is published while disconnected is lost; after 2 s without any PubAck; and, with growing delays, while
 * the journal is full or does not exist yet. Repeats are harmless, because a shard applies each number at
 * most once.
 *
 * Invariant: an update is waiting, or its number is open, or it has its fate. In flight are the records
 * without a PubAck, including those that were given up, until the broker has answered or cannot receive
 * them any more.
 *
 * Events are handled one at a time: meanwhile only the events that a command allows may be raised,
 * ps_outbox_pause() from `session_over`, and any event from `call_over`. Memory is allocated only by
 * ps_outbox_send(), and by ps_outbox_stored() for an error.
 */
struct ps_outbox {
  struct ps_outbox_deps deps;
  struct ps_shard_window *windows[PS_SHARDS_MAX];
  /** The windows in the order of their turns. */
  struct ps_shard_window *turns[PS_SHARDS_MAX];
  size_t turn_count;
  struct ps_in_flight in_flight;
  struct ps_outcome_tracker tracker;
  /** Calls whose `call_over` is due, in order. */
  struct ps_queue over;
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

/** Makes an outbox that waits for its first session; NULL if there is no memory. */
struct ps_outbox *ps_outbox_new(const struct ps_outbox_deps *deps);

/** Frees an outbox without calling any command; every call that was sent must be over. */
void ps_outbox_destroy(struct ps_outbox *outbox);

/**
 * Sends the updates of a call. `call_over` follows once none is pending: at once for a call without
 * updates, or whose `end` is set. False, and nothing changed, if there is no memory.
 */
bool ps_outbox_send(struct ps_outbox *outbox, struct ps_update_call *call, int64_t now_ms);

/** Ends a call, for instance at its deadline: its pending updates are given up. */
void ps_outbox_end_call(struct ps_outbox *outbox, struct ps_update_call *call,
                        struct ps_failure *reason, int64_t now_ms);

/** A session has begun: numbers start again at 1. */
void ps_outbox_start(struct ps_outbox *outbox, uint64_t session, int64_t now_ms);

/** The session has ended: nothing is published until ps_outbox_start(). */
void ps_outbox_pause(struct ps_outbox *outbox);

/**
 * The broker has stored a record. False, and nothing changed, if there is no memory for the error that it
 * is in the journal of another shard.
 */
bool ps_outbox_stored(struct ps_outbox *outbox, uint64_t slot, uint64_t serial, unsigned shard,
                      struct ps_position at, int64_t now_ms);

/** The broker refused to store a record; `is_retryable`: it may store the same record later. */
void ps_outbox_refused(struct ps_outbox *outbox, uint64_t slot, uint64_t serial,
                       struct ps_failure *failure, bool is_retryable, int64_t now_ms);

/** The `publish` or `repeat` of an update has failed; raised before that command returns. */
void ps_outbox_publish_failed(struct ps_outbox *outbox, struct ps_block_update *update,
                              struct ps_failure *failure);

/**
 * The last `publish` or `repeat` of an update was not and will not be handed to the connection, so it does
 * not count as sent. Raised before `release` returns, or before `repeat` does, because that message is handed
 * over in place of the one before; or between events. A record that is still open is repeated like any other
 * without a PubAck.
 */
void ps_outbox_withdrawn(struct ps_block_update *update);

/** An owner has sent outcomes; `is_reply`: in reply to a request. Those of another session are ignored. */
void ps_outbox_answered(struct ps_outbox *outbox, const struct ps_answers *answers, bool is_reply,
                        int64_t now_ms);

/** A request for outcomes was answered with an error; `retry_after_ms` is the delay that it asks for. */
void ps_outbox_ask_failed(struct ps_outbox *outbox, unsigned shard, struct ps_failure *failure,
                          int64_t retry_after_ms, int64_t now_ms);

/** The broker denied the publication of an update; ignored if it is no longer in flight. */
void ps_outbox_denied(struct ps_outbox *outbox, struct ps_block_update *update,
                      struct ps_failure *failure, int64_t now_ms);

/** The connection is lost; nothing is published until it is back. */
void ps_outbox_disconnected(struct ps_outbox *outbox);

/** The connection is back. */
void ps_outbox_reconnected(struct ps_outbox *outbox, int64_t now_ms);

/** The time of `set_timer` has come. */
void ps_outbox_tick(struct ps_outbox *outbox, int64_t now_ms);

/** A request for outcomes could not be published: these records are given up. */
void ps_outbox_ask_not_published(struct ps_outbox *outbox, unsigned shard, const uint64_t *numbers,
                                 size_t count, struct ps_failure *failure);

#endif
