/* Indexes of parts in messages. */
#include "parts/part-slice.h"

#include <string.h>

/** Rows of a block, or elements of a row, up to which numbers take two bytes. */
#define PACKED_NUMBERS_MAX 65536
#define ALIGN_BYTES 8

size_t ps_packed_number_bytes(const struct ps_parameter *parameter, uint64_t block, bool has_inner) {
  uint64_t row_elements = ps_row_elements(parameter);
  uint64_t elements = ps_block_elements(parameter, block);
  uint64_t start = block * parameter->layout.block_elements;
  bool is_whole_rows = start % row_elements == 0 && elements % row_elements == 0;
  uint64_t rows = is_whole_rows ? elements / row_elements : 1;
  uint64_t inner = is_whole_rows ? row_elements : elements;
  bool is_narrow = rows <= PACKED_NUMBERS_MAX && (!has_inner || inner <= PACKED_NUMBERS_MAX);
  return is_narrow ? sizeof(uint16_t) : PS_INDEX_NUMBER_BYTES;
}

size_t ps_part_index_bytes(size_t row_count, size_t inner_count, size_t number_bytes) {
  size_t bytes = (row_count + inner_count) * number_bytes;
  return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

size_t ps_slice_index_bytes(const struct ps_part_slice *slice, size_t number_bytes) {
  if (slice->is_whole_block) return 0;
  return ps_part_index_bytes(slice->row_count, slice->inner_count, number_bytes);
}

void ps_write_part_entry(struct ps_draft *draft, const struct ps_part_slice *slice) {
  ps_draft_key(draft, "part");
  ps_pack_list(draft, slice->inner == NULL ? 1 : 2);
  ps_pack_whole(draft, slice->row_count);
  if (slice->inner != NULL) ps_pack_whole(draft, slice->inner_count);
}

/** Writes numbers; returns where they end. */
static uint8_t *write_numbers(uint8_t *target, const uint32_t *numbers, size_t count,
                              size_t number_bytes) {
  if (number_bytes == PS_INDEX_NUMBER_BYTES) {
    memcpy(target, numbers, count * sizeof *numbers);
    return target + count * sizeof *numbers;
  }
  for (size_t i = 0; i < count; i++, target += sizeof(uint16_t)) {
    uint16_t number = (uint16_t)numbers[i];
    memcpy(target, &number, sizeof number);
  }
  return target;
}

size_t ps_write_part_index(const struct ps_part_slice *slice, size_t number_bytes, uint8_t *target) {
  size_t bytes = ps_part_index_bytes(slice->row_count, slice->inner_count, number_bytes);
  memset(target + bytes - ALIGN_BYTES, 0, ALIGN_BYTES);
  uint8_t *after = write_numbers(target, slice->rows, slice->row_count, number_bytes);
  if (slice->inner != NULL) write_numbers(after, slice->inner, slice->inner_count, number_bytes);
  return bytes;
}
