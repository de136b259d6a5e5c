#ifndef PUSH_ROW_SUMS_H
#define PUSH_ROW_SUMS_H

#include "calls/parameter.h"

/** Rows of a gradient, each once, ascending. */
struct ps_row_sums {
  uint64_t *rows;
  size_t count;
  /** As many rows of elements: the caller's own, or `sums`. */
  const uint8_t *values;
  uint8_t *sums;
};

/**
 * Adds up the rows that are named repeatedly, in the order given and in the element type (integers wrap
 * around), and sorts them; values are copied only if that changes them. BAD_INDEX, BAD_VALUE. Release it
 * with ps_row_sums_release(), also after an error.
 */
pserver_status ps_sum_rows(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                           const void *values, struct ps_row_sums *sums);

void ps_row_sums_release(struct ps_row_sums *sums);

#endif
