#ifndef PUSH_UPDATE_SOURCE_H
#define PUSH_UPDATE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/block-update.h"

struct ps_parameter_update;
struct ps_part_slice;

/** The contents of one block update: elements of one block; or of a clock or a note. */
struct ps_update_source {
  /** What it does to which parameter. */
  const struct ps_parameter_update *update;
  /** Index of the block. */
  uint32_t index;
  unsigned shard;
  /** Its elements: `elements` of them at `values`, or those of the slice. `start`: the block's first in the
   * parameter. */
  const uint8_t *values;
  uint64_t start;
  uint64_t elements;
  const struct ps_part_slice *slice;
  /** Bytes of index and elements in a record of its own. */
  size_t data_bytes;
  /** The same in an entry of a batch, where the index is packed; without padding. */
  size_t entry_bytes;
  /** The trainer's step; 0: none. */
  uint64_t step;

  /** Set by the sender: the version of the block that the record names; 0: none. */
  uint64_t seen;
  /** Set by the sender: the next entry of the same batch; NULL after the last. */
  struct ps_update_source *next;
};

/** The block updates of one call, which succeeds or fails as a whole. */
struct ps_call_updates {
  struct ps_update_source *sources;
  size_t count;
  struct ps_call_mode mode;
  /** Whether each has a record of its own, whatever its size, so that each can be rejected by itself. */
  bool goes_alone;
  /** Set by the call: number of blocks whose gradients came after their step had closed, if that is not an
   * error. */
  size_t late;
};

#endif
