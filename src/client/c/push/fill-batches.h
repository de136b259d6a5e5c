#ifndef PUSH_FILL_BATCHES_H
#define PUSH_FILL_BATCHES_H

#include "push/update-record.h"

/** Limits of batches in a job. */
struct ps_batch_limits {
  /** Whether the rules of the job's journals know batches. */
  bool takes_batches;
  /** Whether gradients of integers go apart from those of floats: they do not wait for a step. */
  bool separates_integers;
  /** The largest message that the broker takes. */
  size_t payload_bytes_max;
};

/**
 * The updates of one call as records, for which there is room for one each; returns how many there are. The
 * small ones of each shard go in as few batches as the limits admit. A large update stays alone, as does a
 * small one without another. The order is kept within a shard for the small ones, and for the large ones.
 */
size_t ps_fill_batches(const struct ps_call_updates *updates, const struct ps_batch_limits *limits,
                       struct ps_update_record *records);

#endif
