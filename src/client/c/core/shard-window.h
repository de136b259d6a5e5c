#ifndef CORE_SHARD_WINDOW_H
#define CORE_SHARD_WINDOW_H

#include "core/block-update.h"
#include "core/times.h"
#include "core/update-list.h"

/**
 * A session's records in one shard: the updates that wait, the numbers that are open, and `done`, the
 * number up to which all records are settled or given up. Invariant: open numbers are in `done + 1 … last`,
 * and `last - done` is at most `records`.
 */
struct ps_shard_window {
  unsigned shard;
  /** Updates that wait to be sent, in order. */
  struct ps_update_list waiting;
  /** Open records that are stored, in the order in which their outcomes become due. */
  struct ps_update_list stored;
  /** The latest publication that has a PubAck; earlier ones of the shard without one are lost. */
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

/** Makes a window without open numbers, to be freed with free(); NULL if there is no memory. */
struct ps_shard_window *ps_shard_window_new(unsigned shard, size_t records);

/** Whether one more number may be opened. */
bool ps_shard_window_has_room(const struct ps_shard_window *window);

/** Returns the record with a number; NULL if the number is not open. */
struct ps_block_update *ps_shard_window_get(const struct ps_shard_window *window, uint64_t n);

/** Opens the next number for an update. */
void ps_shard_window_open(struct ps_shard_window *window, struct ps_block_update *update);

/** Takes back the number that was opened last, whose record was never published. */
void ps_shard_window_take_back(struct ps_shard_window *window, struct ps_block_update *update);

/** Closes the number of an open record, which is settled or given up. */
void ps_shard_window_close(struct ps_shard_window *window, struct ps_block_update *update);

/** Starts numbers again at 1 in a new session; no number may be open. */
void ps_shard_window_restart(struct ps_shard_window *window);

#endif
