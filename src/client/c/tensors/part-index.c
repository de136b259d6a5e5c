#include "tensors/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Index lists of parts, as callers give them. */

/* Radix sort of numbered entries, beginning with the least significant digit. */

#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)

static size_t digit_of(uint64_t number, unsigned shift) { return (number >> shift) & (DIGITS - 1); }

/** Sorts by one digit; equal digits keep their order. */
static void sort_by_digit(const struct ps_numbered *from, struct ps_numbered *to, size_t count,
                          unsigned shift) {
  size_t next[DIGITS] = {0};
  for (size_t i = 0; i < count; i++) next[digit_of(from[i].number, shift)]++;
  size_t before = 0;
  for (size_t digit = 0; digit < DIGITS; digit++) {
    size_t of_digit = next[digit];
    next[digit] = before;
    before += of_digit;
  }
  for (size_t i = 0; i < count; i++) to[next[digit_of(from[i].number, shift)]++] = from[i];
}

bool ps_sort_numbered(struct ps_numbered *list, size_t count, uint64_t most) {
  struct ps_numbered *other = malloc((count + 1) * sizeof *other);
  if (other == NULL) return false;
  struct ps_numbered *from = list;
  struct ps_numbered *to = other;
  for (unsigned shift = 0; shift < 64 && most >> shift > 0; shift += DIGIT_BITS) {
    sort_by_digit(from, to, count, shift);
    struct ps_numbered *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != list) memcpy(list, from, count * sizeof *list);
  free(other);
  return true;
}

/* Index lists as callers give them: checked, and resolved to rows and offsets within a row. */

/** The maximum number of elements of a part. */
#define PART_ELEMENTS_MAX UINT32_MAX

/** Checks the number of lists, and reads their lengths. */
static pserver_status measure(const struct ps_parameter *parameter, const pserver_indices *indices,
                              size_t rank, struct ps_part_index *index) {
  if (rank != (size_t)parameter->rank || (indices == NULL && rank > 0)) {
    ps_fail(PSERVER_ERR_BAD_INDEX,
            "\"%s\": expected one list of indices for each of %d dimensions; received %zu",
            parameter->name, (int)parameter->rank, indices == NULL ? 0 : rank);
    ps_detail_text("parameter", parameter->name);
    ps_detail_signed("expected", parameter->rank);
    return ps_detail_whole("received", indices == NULL ? 0 : rank);
  }
  index->elements = 1;
  for (size_t axis = 0; axis < rank; axis++) {
    index->shape[axis] = indices[axis].count;
    if (indices[axis].count > 0 && index->elements > PART_ELEMENTS_MAX / indices[axis].count) {
      ps_fail(PSERVER_ERR_TOO_LARGE, "\"%s\": expected indices of at most %u elements", parameter->name,
              (unsigned)PART_ELEMENTS_MAX);
      ps_detail_text("parameter", parameter->name);
      return ps_detail_whole("expected", PART_ELEMENTS_MAX);
    }
    index->elements *= indices[axis].count;
  }
  return PSERVER_OK;
}

/** Checks a list, and resolves its negative numbers. */
static pserver_status normalize(const struct ps_parameter *parameter, const pserver_indices *list,
                                size_t axis, uint64_t *numbers) {
  uint64_t size = parameter->shape[axis];
  if (list->values == NULL && list->count > 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "\"%s\": indices of dimension %zu: expected values; received NULL", parameter->name,
                   axis);
  }
  for (size_t i = 0; i < list->count; i++) {
    int64_t given = list->values[i];
    if (given < -(int64_t)size || given >= (int64_t)size) {
      char expected[80];
      snprintf(expected, sizeof expected, "whole numbers from -%" PRIu64 " to %" PRIu64, size, size - 1);
      ps_fail(PSERVER_ERR_BAD_INDEX, "\"%s\": indices of dimension %zu: expected %s; received %" PRId64,
              parameter->name, axis, expected, given);
      ps_detail_text("parameter", parameter->name);
      ps_detail_whole("dimension", axis);
      ps_detail_text("expected", expected);
      return ps_detail_number("received", (double)given);
    }
    numbers[i] = given < 0 ? size - (uint64_t)-given : (uint64_t)given;
  }
  return PSERVER_OK;
}

/** Whether the lists after the first name every element of a row, in order. */
static bool is_everything(const struct ps_parameter *parameter, const pserver_indices *indices,
                          uint64_t *const *lists) {
  for (int32_t axis = 1; axis < parameter->rank; axis++) {
    if (indices[axis].count != parameter->shape[axis]) return false;
    for (size_t i = 0; i < indices[axis].count; i++) {
      if (lists[axis][i] != i) return false;
    }
  }
  return true;
}

/** Returns the offsets within a row of the elements that the lists after the first name, in C order; to be
 * freed. */
static uint64_t *offsets_in_row(const struct ps_parameter *parameter, const pserver_indices *indices,
                                uint64_t *const *lists, uint64_t width) {
  uint64_t *offsets = malloc(width * sizeof *offsets);
  if (offsets == NULL) return NULL;
  for (uint64_t j = 0; j < width; j++) {
    uint64_t rest = j;
    uint64_t stride = 1;
    offsets[j] = 0;
    for (int32_t axis = parameter->rank - 1; axis > 0; axis--) {
      offsets[j] += lists[axis][rest % indices[axis].count] * stride;
      rest /= indices[axis].count;
      stride *= parameter->shape[axis];
    }
  }
  return offsets;
}

/** Takes over the list of rows, and combines the others to offsets. */
static pserver_status join_lists(const struct ps_parameter *parameter, const pserver_indices *indices,
                                 uint64_t **lists, struct ps_part_index *index) {
  bool is_scalar = parameter->rank == 0;
  index->row_count = is_scalar ? 1 : indices[0].count;
  index->width = index->elements / index->row_count;
  index->rows = is_scalar ? calloc(1, sizeof *index->rows) : lists[0];
  lists[0] = NULL;
  if (index->rows == NULL) return ps_no_memory("an index");
  if (is_everything(parameter, indices, lists)) return PSERVER_OK;
  index->offsets = offsets_in_row(parameter, indices, lists, index->width);
  return index->offsets == NULL ? ps_no_memory("an index") : PSERVER_OK;
}

pserver_status ps_read_part_index(const struct ps_parameter *parameter, const pserver_indices *indices,
                                  size_t rank, struct ps_part_index *index) {
  uint64_t *lists[PSERVER_RANK_MAX] = {NULL};
  *index = (struct ps_part_index){0};
  pserver_status status = measure(parameter, indices, rank, index);
  for (size_t axis = 0; axis < rank && status == PSERVER_OK; axis++) {
    lists[axis] = malloc((indices[axis].count + 1) * sizeof *lists[axis]);
    status = lists[axis] == NULL ? ps_no_memory("an index")
                                 : normalize(parameter, &indices[axis], axis, lists[axis]);
  }
  if (status == PSERVER_OK && index->elements > 0) status = join_lists(parameter, indices, lists, index);
  for (size_t axis = 0; axis < PSERVER_RANK_MAX; axis++) free(lists[axis]);
  return status;
}

void ps_part_index_release(struct ps_part_index *index) {
  free(index->rows);
  free(index->offsets);
}
