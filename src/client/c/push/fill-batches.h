#ifndef PUSH_FILL_BATCHES_H
#define PUSH_FILL_BATCHES_H

#include "push/update-record.h"

/** Limits of batches. */
struct ps_batch_limits {
  /** Whether the job's rules know batches. */
  bool takes_batches;
  /** Whether integers go into batches of their own, because their gradients do not wait for a step. */
  bool separates_integers;
  /** The largest message that the broker accepts. */
  size_t payload_bytes_max;
};

/**
 * Makes the records of a call's updates; `records` has memory for one record each. Returns their number.
 * The small updates of a shard go into as few batches as the limits permit; a large update, or a single
 * small one, has a record of its own. Within a shard, small updates keep their order, and so do large ones.
 */
size_t ps_fill_batches(const struct ps_call_updates *updates, const struct ps_batch_limits *limits,
                       struct ps_update_record *records);

#endif
