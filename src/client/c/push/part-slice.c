/* Parts of blocks in messages. */
#include "push/part-slice.h"

#include <string.h>

#include "wire/dtypes.h"
#include "wire/encodings.h"

#define NUMBER_BYTES 4
#define ALIGN_BYTES 8

size_t ps_part_index_bytes(size_t row_count, size_t inner_count) {
  size_t bytes = (row_count + inner_count) * NUMBER_BYTES;
  return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

size_t ps_slice_index_bytes(const struct part_slice *slice) {
  return slice->is_whole_block ? 0 : ps_part_index_bytes(slice->row_count, slice->inner_count);
}

void ps_write_part_entry(struct draft *draft, const struct part_slice *slice) {
  ps_draft_key(draft, "part");
  ps_pack_list(draft, slice->inner == NULL ? 1 : 2);
  ps_pack_whole(draft, slice->row_count);
  if (slice->inner != NULL) ps_pack_whole(draft, slice->inner_count);
}

size_t ps_write_part_index(const struct part_slice *slice, uint8_t *target) {
  size_t bytes = ps_part_index_bytes(slice->row_count, slice->inner_count);
  memset(target + bytes - ALIGN_BYTES, 0, ALIGN_BYTES);
  memcpy(target, slice->rows, slice->row_count * NUMBER_BYTES);
  if (slice->inner != NULL) {
    memcpy(target + slice->row_count * NUMBER_BYTES, slice->inner, slice->inner_count * NUMBER_BYTES);
  }
  return bytes;
}

static void write_elements(const struct parameter_update *update, const uint8_t *from, uint64_t elements,
                           uint8_t *target) {
  if (update->encoding == PSERVER_AS_IS) {
    memcpy(target, from, elements * ps_dtype_bytes(update->parameter->dtype));
  } else {
    ps_encode_elements(update->encoding, from, elements, target);
  }
}

void ps_write_part(const struct part_slice *slice, const struct parameter_update *update,
                   uint8_t *target) {
  size_t from_bytes = ps_dtype_bytes(update->parameter->dtype);
  size_t to_bytes = ps_encoded_bytes(update->parameter->dtype, update->encoding);
  if (!slice->is_whole_block) target += ps_write_part_index(slice, target);
  for (size_t i = 0; i < slice->row_count; i++) {
    const uint8_t *row = update->data + slice->row_from[i] * from_bytes;
    if (slice->inner_from == NULL) {
      write_elements(update, row, slice->width, target);
      target += slice->width * to_bytes;
      continue;
    }
    for (uint64_t j = 0; j < slice->width; j++, target += to_bytes) {
      write_elements(update, row + slice->inner_from[j] * from_bytes, 1, target);
    }
  }
}
