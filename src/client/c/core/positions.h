#ifndef CORE_POSITIONS_H
#define CORE_POSITIONS_H

#include "core/commands.h"
#include "core/position.h"

/** The maximum number of shards of a job. */
#define PS_SHARDS_MAX 256

/**
 * The highest position in each shard, from PubAcks, outcomes, replies to pulls and the job's `at`. Pulls
 * carry it, so that reads see the trainer's own writes and never an older state than before.
 */
struct ps_positions {
  /** By shard: the position that a read must have reached; generation 0: none. */
  struct ps_position awaited[PS_SHARDS_MAX];
  /** By shard: the position of what this trainer itself has written or read. */
  struct ps_position seen[PS_SHARDS_MAX];
  const struct ps_positions_listener *listener;
};

/** Notes a position that was written or read; a lower one than before changes nothing. */
void ps_positions_note(struct ps_positions *positions, unsigned shard, struct ps_position position);

/** Notes a position that reads must have reached, although this trainer has seen nothing of it. */
void ps_positions_await(struct ps_positions *positions, unsigned shard, struct ps_position position);

/** Returns the position that a read of a shard must have reached; the beginning if none is known. */
struct ps_position ps_positions_get(const struct ps_positions *positions, unsigned shard);

/**
 * Takes JOURNAL_REPLACED into account: the shard's journal has this generation now, and positions of earlier
 * ones mean nothing. Does nothing for generation 0, of an error that names none.
 */
void ps_positions_note_replaced(struct ps_positions *positions, unsigned shard, uint64_t generation);

#endif
