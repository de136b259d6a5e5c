#ifndef CORE_SHARD_WINDOW_H
#define CORE_SHARD_WINDOW_H

#include "core/block-update.h"
#include "core/times.h"
#include "core/update-list.h"

/**
 * What a session sends to one shard: the updates that wait, the numbers that are open, and `done`, the
 * number up to which every record is settled or given up and will not be sent again. All open numbers
 * lie in `done + 1 … last`, at most `records` of them.
 */
struct ps_shard_window {
  unsigned shard;
  /** Updates that wait to be sent, in the order of their turns. */
  struct ps_update_list waiting;
  /** Open records that are stored, in the order in which their outcomes are to be asked for. */
  struct ps_update_list stored;
  /** The last publication that has a PubAck: earlier ones of the shard without one are lost. */
  uint64_t acked_send_number;
  /** When outcomes were last asked for. */
  int64_t asked_at_ms;
  size_t records;
  /** The number that was opened last. */
  uint64_t last;
  uint64_t done;
  /** The open records, each at its number modulo `records`. */
  struct ps_block_update *open[];
};

/** A window without open numbers; NULL if there is no memory. Freed with free(). */
struct ps_shard_window *ps_shard_window_new(unsigned shard, size_t records);

/** Whether the shard takes one more number. */
bool ps_shard_window_has_room(const struct ps_shard_window *window);

/** The record with a number; NULL if that is not open. */
struct ps_block_update *ps_shard_window_get(const struct ps_shard_window *window, uint64_t n);

/** Gives an update the next number. */
void ps_shard_window_open(struct ps_shard_window *window, struct ps_block_update *update);

/** Frees the number that was given last: its record was never published. */
void ps_shard_window_take_back(struct ps_shard_window *window, struct ps_block_update *update);

/** The number of an open record is settled or given up. */
void ps_shard_window_close(struct ps_shard_window *window, struct ps_block_update *update);

/** Numbers start over in a new session; no number may be open. */
void ps_shard_window_restart(struct ps_shard_window *window);

#endif
