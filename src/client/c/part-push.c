/* Updates of parts, as messages have room for them. */
#include "part-push.h"

#include <stdlib.h>

#include "dtypes.h"
#include "errors.h"

/** Room for index and elements: the least `max_payload` of a broker, less that for the entries. */
#define SLICE_BYTES_MAX ((size_t)192 * 1024)
#define NUMBER_BYTES 4

static bool append(struct part_push *push, const struct part_slice *slice, uint32_t block) {
  if (push->count == push->capacity) {
    size_t capacity = push->capacity == 0 ? 16 : push->capacity * 2;
    struct part_slice *slices = realloc(push->slices, capacity * sizeof *slices);
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

/** Cuts what a block gets into rectangles of rows and elements. */
static bool slice_block(struct part_push *push, const struct part_block *block,
                        const uint64_t *row_from, const uint64_t *inner_from, size_t element) {
  const uint32_t *inner = block->inner_numbers;
  size_t width = (size_t)block->message_row_elements;
  /* Half of the room for an index, at most, is enough for messages of any shape. A whole row always
   * fits: the block does. */
  size_t width_max = SLICE_BYTES_MAX / 2 / (element + NUMBER_BYTES);
  if (inner != NULL && width > width_max) width = width_max;
  size_t inner_bytes = inner == NULL ? 0 : width * NUMBER_BYTES;
  size_t row_bytes = width * element + NUMBER_BYTES;
  size_t height = inner_bytes + row_bytes > SLICE_BYTES_MAX
                      ? 1
                      : (SLICE_BYTES_MAX - inner_bytes - NUMBER_BYTES) / row_bytes;
  if (height == 0) height = 1;
  for (size_t row = 0; row < block->row_count; row += height) {
    size_t rows = block->row_count - row < height ? block->row_count - row : height;
    for (size_t column = 0; column < block->message_row_elements; column += width) {
      size_t left = (size_t)block->message_row_elements - column;
      size_t columns = left < width ? left : width;
      struct part_slice slice = {.rows = block->row_numbers + row,
                                 .row_count = rows,
                                 .inner = inner == NULL ? NULL : inner + column,
                                 .inner_count = inner == NULL ? 0 : columns,
                                 .row_from = row_from + row,
                                 .inner_from = inner_from == NULL ? NULL : inner_from + column,
                                 .width = columns};
      if (!append(push, &slice, block->index)) return false;
    }
  }
  return true;
}

/** For each place in the message the last place in the tensor that goes with it, times `stride`. */
static void last_places(const struct matching *matching, uint64_t stride, uint64_t *from) {
  for (size_t i = 0; i < matching->count; i++) {
    /* Equal numbers are in the order of the list: the last one stays. */
    from[matching->message[i]] = matching->tensor[i] * stride;
  }
}

pserver_status prepare_part_push(const struct update *update, struct part_push *push) {
  const struct part_plan *plan = &push->plan;
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
  size_t element = encoded_bytes(update->parameter->dtype, update->encoding);
  for (size_t i = 0; i < plan->count && has_memory; i++) {
    const struct part_block *block = &plan->blocks[i];
    last_places(&block->rows, block->tensor_row_elements, row_from);
    if (block->inner != NULL) last_places(block->inner, 1, inner_from);
    has_memory = slice_block(push, block, row_from, block->inner == NULL ? NULL : inner_from, element);
    row_from += block->row_count;
    inner_from += block->inner == NULL ? 0 : block->inner->count;
  }
  return has_memory ? PSERVER_OK : fail(PSERVER_ERR_INTERNAL, "no memory for a part");
}

pserver_status prepare_row_push(const struct update *update, const uint64_t *rows, size_t count,
                                struct part_push *push) {
  pserver_status status = plan_rows(update->parameter, rows, count, &push->plan);
  return status == PSERVER_OK ? prepare_part_push(update, push) : status;
}

void cut_part_push(const struct part_push *push, struct piece *pieces) {
  if (push->count == 0) return;
  const struct parameter *parameter = push->update->parameter;
  const struct layout *layout = &parameter->layout;
  size_t element = encoded_bytes(parameter->dtype, push->update->encoding);
  for (size_t i = 0; i < push->count; i++) {
    const struct part_slice *slice = &push->slices[i];
    uint64_t elements = slice->row_count * slice->width;
    pieces[i] = (struct piece){
        .update = push->update,
        .index = push->blocks[i],
        .shard = (unsigned)((layout->first_shard + push->blocks[i]) % layout->shards),
        .slice = slice,
        .elements = elements,
        .data_bytes = part_index_bytes(slice->row_count, slice->inner_count) + elements * element,
    };
  }
}

void part_push_release(struct part_push *push) {
  part_plan_release(&push->plan);
  free(push->slices);
  free(push->blocks);
  free(push->row_from);
  free(push->inner_from);
}
