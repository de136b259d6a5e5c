#include "records/records.h"

#include <stdlib.h>
#include <string.h>

/* Cuts what a call does to parameters into the contents of block updates. */

/** Returns the version that a block had when it was last read, for a gradient; 0: none is known. */
static uint64_t seen_version(const struct ps_parameter_update *update, uint64_t block) {
  return update->seen == NULL ? 0 : __atomic_load_n(&update->seen[block], __ATOMIC_RELAXED);
}

void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_block_source *sources) {
  const struct ps_parameter *parameter = update->parameter;
  const struct ps_layout *layout = &parameter->layout;
  size_t element = ps_dtype_bytes(parameter->dtype);
  for (uint64_t i = 0; i < layout->blocks; i++) {
    uint64_t start = i * layout->block_elements;
    uint64_t elements = ps_block_elements(parameter, i);
    size_t data_bytes = ps_encoded_bytes(parameter->dtype, update->encoding, elements);
    sources[i] = (struct ps_block_source){
        .update = update,
        .index = (uint32_t)i,
        .shard = ps_shard_of_block(parameter, i),
        .values = update->data + start * element,
        .start = start,
        .elements = elements,
        .data_bytes = data_bytes,
        .seen = seen_version(update, i),
    };
  }
}

void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target) {
  if (update->encoding == PSERVER_AS_IS) {
    memcpy(target, from, elements * ps_dtype_bytes(update->parameter->dtype));
  } else {
    ps_encode_halves(update->encoding, from, elements, target);
  }
}

size_t ps_source_bytes(const struct ps_block_source *source) {
  const struct ps_parameter_update *update = source->update;
  return ps_encoded_bytes(update->parameter->dtype, update->encoding, source->elements);
}

/** Writes the elements of a slice in an encoding that has no groups. */
static void write_slice(const struct ps_part_slice *slice, const struct ps_parameter_update *update,
                        uint8_t *target) {
  size_t from_bytes = ps_dtype_bytes(update->parameter->dtype);
  size_t to_bytes = ps_encoded_bytes(update->parameter->dtype, update->encoding, 1);
  for (size_t i = 0; i < slice->row_count; i++) {
    const uint8_t *row = update->data + slice->row_from[i] * from_bytes;
    if (slice->inner_from == NULL) {
      ps_write_elements(update, row, slice->width, target);
      target += slice->width * to_bytes;
      continue;
    }
    for (uint64_t j = 0; j < slice->width; j++, target += to_bytes) {
      ps_write_elements(update, row + slice->inner_from[j] * from_bytes, 1, target);
    }
  }
}

void ps_gather_floats(const struct ps_block_source *source, uint64_t first, size_t count, float *target) {
  const struct ps_part_slice *slice = source->slice;
  if (slice == NULL) {
    memcpy(target, source->values + first * sizeof(float), count * sizeof(float));
    return;
  }
  const uint8_t *data = source->update->data;
  uint64_t row = first / slice->width;
  uint64_t column = first % slice->width;
  while (count > 0) {
    uint64_t left = slice->inner_from == NULL ? slice->width - column : 1;
    size_t taken = left < count ? (size_t)left : count;
    uint64_t from = slice->row_from[row] + (slice->inner_from == NULL ? column : slice->inner_from[column]);
    memcpy(target, data + from * sizeof(float), taken * sizeof(float));
    target += taken;
    count -= taken;
    column += taken;
    if (column < slice->width) continue;
    column = 0;
    row++;
  }
}

/** Writes the elements of a source in an encoding that has groups. */
static void write_groups(const struct ps_block_source *source, uint8_t *scales, uint8_t *codes) {
  pserver_encoding encoding = source->update->encoding;
  for (uint64_t start = 0; start < source->elements; start += PS_GROUP_ELEMENTS) {
    float group[PS_GROUP_ELEMENTS] = {0};
    uint64_t left = source->elements - start;
    size_t count = left < PS_GROUP_ELEMENTS ? (size_t)left : PS_GROUP_ELEMENTS;
    ps_gather_floats(source, start, count, group);
    ps_encode_group(encoding, group, count, scales, codes);
    scales += sizeof(float);
    codes += ps_code_bytes(encoding, count);
  }
}

void ps_write_source(const struct ps_block_source *source, uint8_t *scales, uint8_t *target) {
  const struct ps_parameter_update *update = source->update;
  if (source->is_encoded) {
    size_t scale_bytes = ps_scale_bytes(source->elements);
    memcpy(scales, source->encoded, scale_bytes);
    memcpy(target, source->encoded + scale_bytes, ps_code_bytes(update->encoding, source->elements));
  } else if (ps_is_grouped(update->encoding)) {
    write_groups(source, scales, target);
  } else if (source->slice != NULL) {
    write_slice(source->slice, update, target);
  } else {
    ps_write_elements(update, source->values, source->elements, target);
  }
}

/* Cuts updates of parts into block updates, as large as messages can be. */

static bool append(struct ps_part_push *push, const struct ps_part_slice *slice, uint32_t block) {
  if (push->count == push->capacity) {
    size_t capacity = push->capacity == 0 ? 16 : push->capacity * 2;
    struct ps_part_slice *slices = realloc(push->slices, capacity * sizeof *slices);
    if (slices != NULL) push->slices = slices;
    uint32_t *blocks = realloc(push->blocks, capacity * sizeof *blocks);
    if (blocks != NULL) push->blocks = blocks;
    if (slices == NULL || blocks == NULL) return false;
    push->capacity = capacity;
  }
  push->slices[push->count] = *slice;
  push->blocks[push->count++] = block;
  return true;
}

/** Makes a slice of whole rows list the offsets of all elements, so that it can be cut between them. */
static bool number_columns(struct ps_part_push *push, struct ps_part_slice *slice) {
  size_t width = (size_t)slice->width;
  if (push->columns == NULL) {
    push->columns = malloc(width * sizeof *push->columns);
    push->column_from = malloc(width * sizeof *push->column_from);
    if (push->columns == NULL || push->column_from == NULL) return false;
    for (size_t i = 0; i < width; i++) {
      push->columns[i] = (uint32_t)i;
      push->column_from[i] = i;
    }
  }
  slice->inner = push->columns;
  slice->inner_count = width;
  if (slice->inner_from == NULL) slice->inner_from = push->column_from;
  return true;
}

/** Cuts the elements of one block, which are not all of it, into rectangles of rows and offsets. */
static bool cut_block(struct ps_part_push *push, const struct ps_part_block *block,
                      const struct ps_part_slice *all, size_t element, size_t bytes_max) {
  size_t width = (size_t)all->width;
  /* A row may take half of a message at most, so that there is enough left for its index. */
  size_t width_max = bytes_max / 2 / (element + PS_INDEX_NUMBER_BYTES);
  if (width > width_max) width = width_max == 0 ? 1 : width_max;
  struct ps_part_slice columns_of = *all;
  if (width < all->width && all->inner == NULL && !number_columns(push, &columns_of)) return false;
  all = &columns_of;
  size_t inner_bytes = all->inner == NULL ? 0 : width * PS_INDEX_NUMBER_BYTES;
  size_t row_bytes = width * element + PS_INDEX_NUMBER_BYTES;
  size_t taken_bytes = inner_bytes + PS_INDEX_NUMBER_BYTES;
  size_t height = bytes_max < taken_bytes + row_bytes ? 1 : (bytes_max - taken_bytes) / row_bytes;
  for (size_t row = 0; row < all->row_count; row += height) {
    size_t rows = all->row_count - row < height ? all->row_count - row : height;
    for (size_t column = 0; column < all->width; column += width) {
      size_t left = (size_t)all->width - column;
      size_t columns = left < width ? left : width;
      struct ps_part_slice slice = {.rows = all->rows + row,
                                    .row_count = rows,
                                    .inner = all->inner == NULL ? NULL : all->inner + column,
                                    .inner_count = all->inner == NULL ? 0 : columns,
                                    .row_from = all->row_from + row,
                                    .inner_from =
                                        all->inner_from == NULL ? NULL : all->inner_from + column,
                                    .width = columns};
      if (!append(push, &slice, block->index)) return false;
    }
  }
  return true;
}

/** Makes the slices of a block: one, unless index and elements are more than `bytes_max` bytes. */
static bool slice_block(struct ps_part_push *push, const struct ps_part_block *block,
                        const uint64_t *row_from, const uint64_t *inner_from, size_t bytes_max) {
  pserver_dtype dtype = push->update->parameter->dtype;
  pserver_encoding encoding = push->update->encoding;
  struct ps_part_slice all = {.rows = block->row_numbers,
                              .row_count = block->row_count,
                              .inner = block->inner_numbers,
                              .inner_count = block->inner_count,
                              .row_from = row_from,
                              .inner_from = inner_from,
                              .width = block->message_row_elements,
                              .is_whole_block = block->is_whole_block};
  size_t index_bytes = ps_slice_index_bytes(&all);
  size_t bytes = index_bytes + ps_encoded_bytes(dtype, encoding, ps_part_elements(block));
  if (all.is_whole_block || bytes <= bytes_max) return append(push, &all, block->index);
  /* That of one element is the most that an element takes, with its share of the scales. */
  return cut_block(push, block, &all, ps_encoded_bytes(dtype, encoding, 1), bytes_max);
}

/** Sets, for each index in the message, the last matching index in the tensor, times `stride`. */
static void last_places(const struct ps_matching *matching, uint64_t stride, uint64_t *from) {
  for (size_t i = 0; i < matching->count; i++) {
    /* Equal numbers are in the order of the list, so the last one is kept. */
    from[matching->message[i]] = matching->tensor[i] * stride;
  }
}

pserver_status ps_prepare_part_push(const struct ps_parameter_update *update, size_t bytes_max,
                                    struct ps_part_push *push) {
  const struct ps_part_plan *plan = &push->plan;
  size_t rows = 0;
  size_t inner = 0;
  push->update = update;
  for (size_t i = 0; i < plan->count; i++) {
    rows += plan->blocks[i].row_count;
    inner += plan->blocks[i].inner == NULL ? 0 : plan->blocks[i].inner->count;
  }
  push->row_from = malloc((rows + 1) * sizeof(uint64_t));
  push->inner_from = malloc((inner + 1) * sizeof(uint64_t));
  uint64_t *row_from = push->row_from;
  uint64_t *inner_from = push->inner_from;
  bool has_memory = row_from != NULL && inner_from != NULL;
  for (size_t i = 0; i < plan->count && has_memory; i++) {
    const struct ps_part_block *block = &plan->blocks[i];
    last_places(&block->rows, block->tensor_row_elements, row_from);
    if (block->inner != NULL) last_places(block->inner, 1, inner_from);
    has_memory = slice_block(push, block, row_from, block->inner == NULL ? NULL : inner_from, bytes_max);
    row_from += block->row_count;
    inner_from += block->inner == NULL ? 0 : block->inner->count;
  }
  return has_memory ? PSERVER_OK : ps_no_memory("a part");
}

pserver_status ps_prepare_row_push(const struct ps_parameter_update *update, const uint64_t *rows,
                                   size_t count, struct ps_part_push *push) {
  pserver_status status = ps_plan_rows(update->parameter, rows, count, &push->plan);
  /* Blocks of a sparse parameter are small enough that a message can also have the numbers of all their
   * rows. */
  return status == PSERVER_OK ? ps_prepare_part_push(update, SIZE_MAX, push) : status;
}

void ps_cut_part_push(const struct ps_part_push *push, struct ps_block_source *sources) {
  if (push->count == 0) return;
  const struct ps_parameter *parameter = push->update->parameter;
  for (size_t i = 0; i < push->count; i++) {
    const struct ps_part_slice *slice = &push->slices[i];
    uint64_t elements = slice->row_count * slice->width;
    sources[i] = (struct ps_block_source){
        .update = push->update,
        .index = push->blocks[i],
        .shard = ps_shard_of_block(parameter, push->blocks[i]),
        .slice = slice,
        .elements = elements,
        .data_bytes = ps_slice_index_bytes(slice) +
                      ps_encoded_bytes(parameter->dtype, push->update->encoding, elements),
        .seen = seen_version(push->update, push->blocks[i]),
    };
  }
}

void ps_part_push_release(struct ps_part_push *push) {
  ps_part_plan_release(&push->plan);
  free(push->slices);
  free(push->blocks);
  free(push->row_from);
  free(push->inner_from);
  free(push->columns);
  free(push->column_from);
}
