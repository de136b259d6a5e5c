#ifndef PUSH_UPDATE_SOURCE_H
#define PUSH_UPDATE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/block-update.h"

struct ps_parameter_update;
struct ps_part_slice;

/** What one block update is made of: a tensor, the part of it that is one block, a clock, or a note. */
struct ps_update_source {
  /** What it does, to which parameter. */
  const struct ps_parameter_update *update;
  uint32_t index;
  unsigned shard;
  /** Its elements: `elements` of them at `values`, or as the slice says. */
  const uint8_t *values;
  uint64_t start;
  uint64_t elements;
  const struct ps_part_slice *slice;
  /** Bytes of its index and elements in a record of its own. */
  size_t data_bytes;
  /** The same as an entry of a batch, where the index is packed; without the padding. */
  size_t entry_bytes;
  /** The trainer's step; 0 in a job without. */
  uint64_t step;

  /** Set by the sender: the version of its block that the record names; 0 for none. */
  uint64_t seen;
  /** Set by the sender: the next entry of the same batch; NULL: none. */
  struct ps_update_source *next;
};

/** The block updates of one call, which fails or succeeds as one. */
struct ps_call_updates {
  struct ps_update_source *sources;
  size_t count;
  struct ps_call_mode mode;
  /** Whether each goes in a record of its own, whatever its size: for what is to be rejected by itself. */
  bool goes_alone;
  /** Set by the call: gradients whose step had closed, where that is no error. */
  size_t late;
};

#endif
