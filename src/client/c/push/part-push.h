#ifndef PUSH_PART_PUSH_H
#define PUSH_PART_PUSH_H

#include "parts/part-plan.h"
#include "push/parameter-update.h"

/** An update of a part, cut into slices, one for each message. */
struct ps_part_push {
  const struct ps_parameter_update *update;
  struct ps_part_plan plan;
  struct ps_part_slice *slices;
  /** The block of each slice. */
  uint32_t *blocks;
  size_t count;
  size_t capacity;
  /** Memory that the slices point into. */
  uint64_t *row_from;
  uint64_t *inner_from;
  /** All offsets within a row, if rows have to be cut. */
  uint32_t *columns;
  uint64_t *column_from;
};

/** Cuts an update of whole rows of a sparse parameter into one slice for each block. Release it also after
 * an error. */
pserver_status ps_prepare_row_push(const struct ps_parameter_update *update, const uint64_t *rows,
                                   size_t count, struct ps_part_push *push);

/**
 * Cuts an update of the elements in `push->plan`. A block gets several slices only if its index and
 * elements are more than `bytes_max` bytes. Release it also after an error.
 */
pserver_status ps_prepare_part_push(const struct ps_parameter_update *update, size_t bytes_max,
                                    struct ps_part_push *push);

/** Makes the sources of the block updates; `sources` has memory for `push->count` of them. */
void ps_cut_part_push(const struct ps_part_push *push, struct ps_update_source *sources);

/**
 * Writes the tensor bytes of a slice: its index, in numbers of so many bytes, unless it is a whole block,
 * and its elements in the update's encoding.
 */
void ps_write_part(const struct ps_part_slice *slice, const struct ps_parameter_update *update,
                   size_t number_bytes, uint8_t *target);

void ps_part_push_release(struct ps_part_push *push);

#endif
