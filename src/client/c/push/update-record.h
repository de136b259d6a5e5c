#ifndef PUSH_UPDATE_RECORD_H
#define PUSH_UPDATE_RECORD_H

#include "push/update-source.h"

/**
 * What one record is made of: a block update or a clock; or a batch, updates of several blocks of one shard,
 * which follow `first` by `next`.
 */
struct ps_update_record {
  struct ps_update_source *first;
  struct ps_update_source *last;
  /** 1, or more of a batch. */
  size_t blocks;
  /** As a batch: bytes of all entries, and at most as many of the header. */
  size_t batch_bytes;
  size_t head_bytes;
};

/** Bytes of indexes and elements. */
static inline size_t ps_record_data_bytes(const struct ps_update_record *record) {
  return record->blocks > 1 ? record->batch_bytes : record->first->data_bytes;
}

#endif
