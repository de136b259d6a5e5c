/* Parts of parameters, cut along their blocks. Memory is in proportion to the elements of a part. */
#include "pull/part-plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors/details.h"
#include "errors/errors.h"
#include "push/numbered.h"

/** Elements that a part may have. */
#define PART_ELEMENTS_MAX UINT32_MAX

static uint32_t first_row[1] = {0};
static uint64_t first_place[1] = {0};

static pserver_status no_memory(void) { return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a part"); }

/** The numbers that a caller's list stands for. */
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

/** Numbers in ascending order, equal ones in the order of the list. To be freed. */
static struct ps_numbered *sorted(const uint64_t *numbers, size_t count) {
  struct ps_numbered *list = malloc(count * sizeof *list);
  bool is_ascending = true;
  uint64_t most = 0;
  if (list == NULL) return NULL;
  for (size_t i = 0; i < count; i++) {
    list[i] = (struct ps_numbered){numbers[i], i};
    is_ascending = is_ascending && (i == 0 || numbers[i] >= numbers[i - 1]);
    if (numbers[i] > most) most = numbers[i];
  }
  if (is_ascending || ps_sort_numbered(list, count, most)) return list;
  free(list);
  return NULL;
}

static bool allocate_matching(struct ps_matching *matching, size_t count) {
  matching->tensor = malloc(count * sizeof *matching->tensor);
  matching->message = malloc(count * sizeof *matching->message);
  matching->count = count;
  return matching->tensor != NULL && matching->message != NULL;
}

/** Fills a matching, and the list of distinct numbers less `base`; returns how many there are. */
static size_t match(const struct ps_numbered *list, size_t count, uint64_t base, uint32_t *numbers,
                    struct ps_matching *matching) {
  size_t distinct = 0;
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || list[i].number != list[i - 1].number) {
      numbers[distinct++] = (uint32_t)(list[i].number - base);
    }
    matching->tensor[i] = list[i].place;
    matching->message[i] = (uint32_t)(distinct - 1);
  }
  matching->count = count;
  return distinct;
}

/** The first of a sorted list that lies in another block than `list[start]`. */
static size_t end_of_block(const struct ps_numbered *list, size_t count, size_t start,
                           uint64_t block_size) {
  uint64_t end_number = (list[start].number / block_size + 1) * block_size;
  size_t end = start;
  while (end < count && list[end].number < end_number) end++;
  return end;
}

/**
 * Cuts a list of numbers at the borders of blocks of `block_size`. `rows` of each block then tells
 * which of the numbers lie in it.
 */
static pserver_status cut(const uint64_t *numbers, size_t count, uint64_t block_size,
                          struct ps_part_plan *plan) {
  struct ps_numbered *list = sorted(numbers, count);
  plan->numbers = malloc(count * sizeof *plan->numbers);
  bool has_memory = allocate_matching(&plan->rows, count);
  if (list == NULL || plan->numbers == NULL || !has_memory) {
    free(list);
    return no_memory();
  }
  size_t blocks = 0;
  for (size_t i = 0; i < count; i = end_of_block(list, count, i, block_size)) blocks++;
  plan->blocks = calloc(blocks, sizeof *plan->blocks);
  if (plan->blocks == NULL) {
    free(list);
    return no_memory();
  }
  for (size_t start = 0; start < count;) {
    size_t end = end_of_block(list, count, start, block_size);
    uint64_t index = list[start].number / block_size;
    struct ps_part_block *block = &plan->blocks[plan->count++];
    block->index = (uint32_t)index;
    block->row_numbers = plan->numbers + start;
    block->rows = (struct ps_matching){plan->rows.tensor + start, plan->rows.message + start, 0};
    block->row_count =
        match(list + start, end - start, index * block_size, block->row_numbers, &block->rows);
    start = end;
  }
  free(list);
  return PSERVER_OK;
}

/** Rows of a parameter that is cut between rows; `plan->inner` says which elements of them. */
static pserver_status cut_rows(const struct ps_parameter *parameter, const uint64_t *rows, size_t count,
                               size_t inner_count, uint64_t tensor_row_elements,
                               struct ps_part_plan *plan) {
  uint64_t width = ps_row_elements(parameter);
  uint64_t block_rows = parameter->layout.block_elements / width;
  pserver_status status = cut(rows, count, block_rows, plan);
  for (size_t i = 0; i < plan->count && status == PSERVER_OK; i++) {
    struct ps_part_block *block = &plan->blocks[i];
    bool is_whole_row = plan->inner_numbers == NULL || inner_count == width;
    block->inner = plan->inner_numbers == NULL ? NULL : &plan->inner;
    block->inner_numbers = is_whole_row ? NULL : plan->inner_numbers;
    block->inner_count = is_whole_row ? 0 : inner_count;
    block->tensor_row_elements = tensor_row_elements;
    block->message_row_elements = plan->inner_numbers == NULL ? width : inner_count;
    block->is_whole_block =
        is_whole_row && block->row_count * width == ps_block_elements(parameter, block->index);
  }
  return status;
}

/** A parameter whose rows are cut: each of its blocks is one row, and its elements are listed. */
static pserver_status cut_elements(const struct ps_parameter *parameter, const uint64_t *rows,
                                   size_t row_count, const uint64_t *offsets, uint64_t width,
                                   struct ps_part_plan *plan) {
  uint64_t *elements = malloc(plan->elements * sizeof *elements);
  if (elements == NULL) return no_memory();
  uint64_t stride = ps_row_elements(parameter);
  for (size_t i = 0; i < row_count; i++) {
    for (uint64_t j = 0; j < width; j++) {
      elements[i * width + j] = rows[i] * stride + (offsets == NULL ? j : offsets[j]);
    }
  }
  pserver_status status = cut(elements, (size_t)plan->elements, parameter->layout.block_elements, plan);
  free(elements);
  if (status != PSERVER_OK) return status;
  plan->block_inner = calloc(plan->count, sizeof *plan->block_inner);
  if (plan->block_inner == NULL) return no_memory();
  for (size_t i = 0; i < plan->count; i++) {
    struct ps_part_block *block = &plan->blocks[i];
    plan->block_inner[i] = block->rows;
    block->inner = &plan->block_inner[i];
    block->inner_numbers = block->row_numbers;
    block->inner_count = block->row_count;
    block->message_row_elements = block->row_count;
    block->is_whole_block = block->row_count == ps_block_elements(parameter, block->index);
    block->row_numbers = first_row;
    block->row_count = 1;
    block->rows = (struct ps_matching){first_place, first_row, 1};
  }
  return status;
}

/** Whether lists name every element of a row in order. */
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

/** Offsets in a row of the elements that the lists after the first name, in C order. To be freed. */
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

static pserver_status cut_lists(const struct ps_parameter *parameter, const pserver_indices *indices,
                                uint64_t *const *lists, struct ps_part_plan *plan) {
  static const uint64_t only_row[1] = {0};
  const uint64_t *rows = parameter->rank == 0 ? only_row : lists[0];
  size_t row_count = parameter->rank == 0 ? 1 : indices[0].count;
  uint64_t width = plan->elements / row_count;
  uint64_t *offsets = NULL;
  if (!is_everything(parameter, indices, lists)) {
    offsets = offsets_in_row(parameter, indices, lists, width);
    if (offsets == NULL) return no_memory();
  }
  pserver_status status = PSERVER_OK;
  size_t distinct = 0;
  bool is_by_rows = ps_is_cut_between_rows(parameter);
  if (is_by_rows && offsets != NULL) {
    struct ps_numbered *list = sorted(offsets, (size_t)width);
    plan->inner_numbers = malloc(width * sizeof *plan->inner_numbers);
    bool has_memory = allocate_matching(&plan->inner, (size_t)width);
    if (list == NULL || plan->inner_numbers == NULL || !has_memory) status = no_memory();
    else distinct = match(list, (size_t)width, 0, plan->inner_numbers, &plan->inner);
    free(list);
  }
  if (status == PSERVER_OK) {
    status = is_by_rows ? cut_rows(parameter, rows, row_count, distinct, width, plan)
                        : cut_elements(parameter, rows, row_count, offsets, width, plan);
  }
  free(offsets);
  return status;
}

static pserver_status measure(const struct ps_parameter *parameter, const pserver_indices *indices,
                              size_t rank, struct ps_part_plan *plan) {
  if (rank != (size_t)parameter->rank || (indices == NULL && rank > 0)) {
    ps_fail(PSERVER_ERR_BAD_INDEX,
            "\"%s\": expected one list of indices for each of %d dimensions; received %zu",
            parameter->name, (int)parameter->rank, indices == NULL ? 0 : rank);
    ps_detail_text("parameter", parameter->name);
    ps_detail_signed("expected", parameter->rank);
    return ps_detail_whole("received", indices == NULL ? 0 : rank);
  }
  plan->elements = 1;
  for (size_t axis = 0; axis < rank; axis++) {
    plan->shape[axis] = indices[axis].count;
    if (indices[axis].count > 0 && plan->elements > PART_ELEMENTS_MAX / indices[axis].count) {
      ps_fail(PSERVER_ERR_TOO_LARGE, "\"%s\": expected indices of at most %u elements", parameter->name,
              (unsigned)PART_ELEMENTS_MAX);
      ps_detail_text("parameter", parameter->name);
      return ps_detail_whole("expected", PART_ELEMENTS_MAX);
    }
    plan->elements *= indices[axis].count;
  }
  return PSERVER_OK;
}

pserver_status ps_plan_part(const struct ps_parameter *parameter, const pserver_indices *indices,
                            size_t rank, struct ps_part_plan *plan) {
  uint64_t *lists[PSERVER_RANK_MAX] = {NULL};
  *plan = (struct ps_part_plan){0};
  pserver_status status = measure(parameter, indices, rank, plan);
  for (size_t axis = 0; axis < rank && status == PSERVER_OK; axis++) {
    lists[axis] = malloc((indices[axis].count + 1) * sizeof(uint64_t));
    status = lists[axis] == NULL ? no_memory() : normalize(parameter, &indices[axis], axis, lists[axis]);
  }
  if (status == PSERVER_OK && plan->elements > 0) {
    status = cut_lists(parameter, indices, lists, plan);
  }
  for (size_t axis = 0; axis < rank && axis < PSERVER_RANK_MAX; axis++) free(lists[axis]);
  return status;
}

pserver_status ps_plan_rows(const struct ps_parameter *parameter, const uint64_t *rows, size_t count,
                            struct ps_part_plan *plan) {
  *plan = (struct ps_part_plan){.elements = count * ps_row_elements(parameter)};
  if (count == 0) return PSERVER_OK;
  return cut_rows(parameter, rows, count, 0, ps_row_elements(parameter), plan);
}

static void release_matching(struct ps_matching *matching) {
  free(matching->tensor);
  free(matching->message);
}

void ps_part_plan_release(struct ps_part_plan *plan) {
  release_matching(&plan->rows);
  release_matching(&plan->inner);
  free(plan->numbers);
  free(plan->inner_numbers);
  free(plan->block_inner);
  free(plan->blocks);
}
