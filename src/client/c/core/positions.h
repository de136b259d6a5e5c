#ifndef CORE_POSITIONS_H
#define CORE_POSITIONS_H

#include "core/commands.h"
#include "core/position.h"

/** Shards of a job at most. */
#define PS_SHARDS_MAX 256

/**
 * The highest position seen in each shard, from PubAcks, answers, pull replies and the `at` of the
 * job. Pulls carry it, so that reads see the trainer's own writes and never go back.
 */
struct ps_positions {
  /** By shard: positions that reads must have reached; generation 0 for none. */
  struct ps_position awaited[PS_SHARDS_MAX];
  /** By shard: positions of what this trainer has itself written or read. */
  struct ps_position seen[PS_SHARDS_MAX];
  const struct ps_positions_listener *listener;
};

/** Takes a position into account that was seen; a lower one changes nothing. */
void ps_positions_note(struct ps_positions *positions, unsigned shard, struct ps_position position);

/** Takes a position into account that reads must have reached, though nothing of it was seen. */
void ps_positions_await(struct ps_positions *positions, unsigned shard, struct ps_position position);

/** The position in a shard; its beginning if nothing was seen. */
struct ps_position ps_positions_get(const struct ps_positions *positions, unsigned shard);

/**
 * Takes JOURNAL_REPLACED into account: the shard's journal has this generation now, and positions of earlier
 * ones mean nothing. Does nothing for generation 0, of an error that names none.
 */
void ps_positions_note_replaced(struct ps_positions *positions, unsigned shard, uint64_t generation);

#endif
