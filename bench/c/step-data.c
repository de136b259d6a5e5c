/* Makes the gradients, and chooses the rows, of training steps. */
#include "step-data.h"

#include <stdbool.h>
#include <stdlib.h>

void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) abort();
  return memory;
}

float *make_floats(size_t count) {
  float *values = allocate(count, sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = ((float)(i % 2001) - 1000.5F) / 1e6F;
  return values;
}

int64_t *choose_rows(uint32_t seed, size_t count, size_t below) {
  bool *is_chosen = allocate(below, sizeof *is_chosen);
  int64_t *rows = allocate(count, sizeof *rows);
  uint32_t state = seed;
  for (size_t chosen = 0; chosen < count;) {
    state = state * 1664525U + 1013904223U;
    size_t row = (size_t)((double)state / 4294967296.0 * (double)below);
    chosen += !is_chosen[row];
    is_chosen[row] = true;
  }
  size_t next = 0;
  for (size_t row = 0; row < below; row++) {
    if (is_chosen[row]) rows[next++] = (int64_t)row;
  }
  free(is_chosen);
  return rows;
}
