#ifndef PUSH_ROW_SUMS_H
#define PUSH_ROW_SUMS_H

#include "calls/parameter.h"

/** The rows of a gradient, each once, ascending. */
struct ps_row_sums {
  uint64_t *rows;
  size_t count;
  /** The elements of the rows: the caller's own, or `sums`. */
  const uint8_t *values;
  uint8_t *sums;
};

/**
 * Sorts rows, and adds up repeated ones, in the order given and in the element type; integers wrap around.
 * Copies values only if the rows are not ascending already. Release the sums with ps_row_sums_release(),
 * also after an error. BAD_INDEX.
 */
pserver_status ps_sum_rows(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                           const void *values, struct ps_row_sums *sums);

void ps_row_sums_release(struct ps_row_sums *sums);

#endif
