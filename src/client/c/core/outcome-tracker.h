#ifndef CORE_OUTCOME_TRACKER_H
#define CORE_OUTCOME_TRACKER_H

#include "core/commands.h"
#include "core/positions.h"
#include "core/shard-window.h"
#include "core/update-call.h"

/** How long an outcome may take after the PubAck before it is asked for. */
#define PS_ASK_AFTER_MS 1000

/** The outcomes of one trainer's records in one shard. */
struct ps_answers {
  /** Less than PS_SHARDS_MAX. */
  unsigned shard;
  uint64_t generation;
  uint64_t session;
  const struct ps_outcome *outcomes;
  size_t count;
};

/** Calls of the tracker to the outbox about an open record. */
struct ps_record_settler {
  void *owner;

  /** The outcome is known. */
  void (*settle)(void *owner, struct ps_block_update *update, const struct ps_outcome *outcome);
  /** The outcome will never be known. */
  void (*give_up)(void *owner, struct ps_block_update *update, struct ps_failure *reason);
  /** A host says that the session is over. */
  void (*end_session)(void *owner, struct ps_failure *failure);
};

/**
 * Matches outcomes from shard owners with open records, and asks for outcomes that do not come: an owner
 * that has just taken a shard over applies records without answering, and messages to a disconnected client
 * are lost.
 */
struct ps_outcome_tracker {
  struct ps_positions *positions;
  const struct ps_outbox_commands *commands;
  struct ps_record_settler settler;
  /** Memory for the numbers of one request: as many as a window has. */
  uint64_t *numbers;
};

/**
 * Takes outcomes of this session from the owner of a shard; `is_reply`: in reply to a request. The window
 * is NULL if nothing was sent to the shard.
 */
void ps_outcome_tracker_take(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                             const struct ps_answers *answers, bool is_reply);

/** Asks for all outcomes that are due in a shard, in one request. */
void ps_outcome_tracker_ask(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                            uint64_t session, int64_t now_ms);

/** A request for outcomes was answered with an error; `retry_after_ms` is the delay that it asks for. */
void ps_outcome_tracker_ask_failed(struct ps_outcome_tracker *tracker,
                                   struct ps_shard_window *window, struct ps_failure *failure,
                                   int64_t retry_after_ms);

#endif
