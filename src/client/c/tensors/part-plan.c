#include "tensors/tensors.h"

#include <stdlib.h>
#include <string.h>

/* Parts, cut along the blocks of their parameter. */

/* Indexes of parts in messages. */

#define ALIGN_BYTES 8

/** Returns the bytes of an index, padded to a multiple of 8. */
static size_t index_bytes(size_t row_count, size_t inner_count) {
  size_t bytes = (row_count + inner_count) * sizeof(uint32_t);
  return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

size_t ps_slice_index_bytes(const struct ps_part_slice *slice) {
  return slice->is_whole_block ? 0 : index_bytes(slice->row_count, slice->inner_count);
}

void ps_write_part_entry(struct ps_draft *draft, const struct ps_part_slice *slice) {
  ps_draft_key(draft, "part");
  ps_pack_list(draft, slice->inner == NULL ? 1 : 2);
  ps_pack_whole(draft, slice->row_count);
  if (slice->inner != NULL) ps_pack_whole(draft, slice->inner_count);
}

size_t ps_write_part_index(const struct ps_part_slice *slice, uint8_t *target) {
  size_t bytes = index_bytes(slice->row_count, slice->inner_count);
  memset(target + bytes - ALIGN_BYTES, 0, ALIGN_BYTES);
  ps_put_uint32_list(&target, slice->rows, slice->row_count);
  if (slice->inner != NULL) ps_put_uint32_list(&target, slice->inner, slice->inner_count);
  return bytes;
}

/* Parts of single blocks in reads: their index in requests, and where their elements go. */

uint64_t ps_part_elements(const struct ps_part_block *part) {
  return part->row_count * part->message_row_elements;
}

/** Returns the part's index as messages carry it. */
static struct ps_part_slice index_of(const struct ps_part_block *part) {
  return (struct ps_part_slice){.rows = part->row_numbers,
                                .row_count = part->row_count,
                                .inner = part->inner_numbers,
                                .inner_count = part->inner_count};
}

pserver_status ps_write_part_request(struct ps_draft *draft, const struct ps_part_block *part) {
  struct ps_part_slice slice = index_of(part);
  size_t bytes = index_bytes(slice.row_count, slice.inner_count);
  uint8_t *index = malloc(bytes);
  if (index == NULL) return ps_no_memory("an index");
  ps_write_part_entry(draft, &slice);
  ps_write_part_index(&slice, index);
  pserver_status status = ps_draft_end_and_append(draft, index, bytes);
  free(index);
  return status;
}

void ps_scatter_part(const struct ps_part_block *part, size_t element_bytes, const uint8_t *message,
                     uint8_t *tensor) {
  size_t to_row = part->tensor_row_elements * element_bytes;
  size_t from_row = part->message_row_elements * element_bytes;
  for (size_t i = 0; i < part->rows.count; i++) {
    uint8_t *to = tensor + part->rows.tensor[i] * to_row;
    const uint8_t *from = message + part->rows.message[i] * from_row;
    if (part->inner == NULL) {
      memcpy(to, from, from_row);
      continue;
    }
    for (size_t j = 0; j < part->inner->count; j++) {
      memcpy(to + part->inner->tensor[j] * element_bytes, from + part->inner->message[j] * element_bytes,
             element_bytes);
    }
  }
}

/* Cuts parts of parameters along their blocks. Memory is in proportion to the elements of a part. */

static uint32_t first_row[1] = {0};
static uint64_t first_place[1] = {0};

/** Returns the numbers in ascending order, equal ones in the order of the list; to be freed. */
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

/** Fills a matching, and the list of distinct numbers minus `base`; returns how many these are. */
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

/** Returns the index of the first number after `start` that is in another block. */
static size_t end_of_block(const struct ps_numbered *list, size_t count, size_t start,
                           uint64_t block_size) {
  uint64_t end_number = (list[start].number / block_size + 1) * block_size;
  size_t end = start;
  while (end < count && list[end].number < end_number) end++;
  return end;
}

/**
 * Cuts a list of numbers at the borders of blocks of `block_size` numbers. `rows` of each block then
 * matches the numbers within it.
 */
static pserver_status cut(const uint64_t *numbers, size_t count, uint64_t block_size,
                          struct ps_part_plan *plan) {
  struct ps_numbered *list = sorted(numbers, count);
  plan->numbers = malloc(count * sizeof *plan->numbers);
  bool has_memory = allocate_matching(&plan->rows, count);
  if (list == NULL || plan->numbers == NULL || !has_memory) {
    free(list);
    return ps_no_memory("a part");
  }
  size_t blocks = 0;
  for (size_t i = 0; i < count; i = end_of_block(list, count, i, block_size)) blocks++;
  plan->blocks = calloc(blocks, sizeof *plan->blocks);
  if (plan->blocks == NULL) {
    free(list);
    return ps_no_memory("a part");
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

/** Cuts rows of a parameter that is cut between rows; `plan->inner` matches the elements within them. */
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

/** Cuts elements of a parameter whose rows are cut: each block counts as one row. */
static pserver_status cut_elements(const struct ps_parameter *parameter, const struct ps_part_index *index,
                                   struct ps_part_plan *plan) {
  uint64_t *elements = malloc(plan->elements * sizeof *elements);
  if (elements == NULL) return ps_no_memory("a part");
  uint64_t stride = ps_row_elements(parameter);
  uint64_t width = index->width;
  for (size_t i = 0; i < index->row_count; i++) {
    for (uint64_t j = 0; j < width; j++) {
      uint64_t offset = index->offsets == NULL ? j : index->offsets[j];
      elements[i * width + j] = index->rows[i] * stride + offset;
    }
  }
  pserver_status status = cut(elements, (size_t)plan->elements, parameter->layout.block_elements, plan);
  free(elements);
  if (status != PSERVER_OK) return status;
  plan->block_inner = calloc(plan->count, sizeof *plan->block_inner);
  if (plan->block_inner == NULL) return ps_no_memory("a part");
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

/** Matches the offsets within rows of a parameter that is cut between rows; counts the distinct ones. */
static pserver_status match_offsets(const struct ps_part_index *index, struct ps_part_plan *plan,
                                    size_t *distinct) {
  size_t width = (size_t)index->width;
  struct ps_numbered *list = sorted(index->offsets, width);
  plan->inner_numbers = malloc(width * sizeof *plan->inner_numbers);
  bool has_memory = allocate_matching(&plan->inner, width);
  bool is_made = list != NULL && plan->inner_numbers != NULL && has_memory;
  if (is_made) *distinct = match(list, width, 0, plan->inner_numbers, &plan->inner);
  free(list);
  return is_made ? PSERVER_OK : ps_no_memory("a part");
}

static pserver_status cut_index(const struct ps_parameter *parameter, const struct ps_part_index *index,
                                struct ps_part_plan *plan) {
  if (!ps_is_cut_between_rows(parameter)) return cut_elements(parameter, index, plan);
  size_t distinct = 0;
  pserver_status status = index->offsets == NULL ? PSERVER_OK : match_offsets(index, plan, &distinct);
  if (status != PSERVER_OK) return status;
  return cut_rows(parameter, index->rows, index->row_count, distinct, index->width, plan);
}

pserver_status ps_plan_part(const struct ps_parameter *parameter, const pserver_indices *indices,
                            size_t rank, struct ps_part_plan *plan) {
  struct ps_part_index index;
  pserver_status status = ps_read_part_index(parameter, indices, rank, &index);
  *plan = (struct ps_part_plan){.elements = index.elements};
  memcpy(plan->shape, index.shape, sizeof plan->shape);
  if (status == PSERVER_OK && index.elements > 0) status = cut_index(parameter, &index, plan);
  ps_part_index_release(&index);
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
