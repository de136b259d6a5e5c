#ifndef PUSH_UPDATE_RECORD_H
#define PUSH_UPDATE_RECORD_H

#include "push/update-source.h"

/**
 * The sources of one record: a block update, a clock or a note; or a batch, whose entries follow `first` by
 * `next`.
 */
struct ps_update_record {
  struct ps_update_source *first;
  struct ps_update_source *last;
  /** 1, or more for a batch. */
  size_t blocks;
  /** Bytes of all entries as a batch, and the maximum bytes of its header. */
  size_t batch_bytes;
  size_t head_bytes;
};

/** Returns the bytes of all indexes and elements. */
static inline size_t ps_record_data_bytes(const struct ps_update_record *record) {
  return record->blocks > 1 ? record->batch_bytes : record->first->data_bytes;
}

#endif
