#ifndef PARTS_PART_INDEX_H
#define PARTS_PART_INDEX_H

#include "calls/parameter.h"

/**
 * The elements of a parameter that index lists name, in the order of the caller's tensor: in each of the
 * rows, those at the offsets. A scalar has one row of one element.
 */
struct ps_part_index {
  /** Lengths of the lists: the shape of the caller's tensor. A dimension may be 0. */
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t elements;
  /** Row numbers; NULL if there are no elements. */
  uint64_t *rows;
  size_t row_count;
  /** Offsets within a row, `width` of them; NULL: all elements of a row, in their order. */
  uint64_t *offsets;
  uint64_t width;
};

/**
 * Reads one list for each dimension; negative numbers count from the dimension's end. Release the index with
 * ps_part_index_release(), also after an error. BAD_INDEX, BAD_VALUE; TOO_LARGE for 2^32 elements or more.
 */
pserver_status ps_read_part_index(const struct ps_parameter *parameter, const pserver_indices *indices,
                                  size_t rank, struct ps_part_index *index);

void ps_part_index_release(struct ps_part_index *index);

#endif
