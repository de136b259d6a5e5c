/* Parts of single blocks in reads: their index in requests, and where their elements go. */
#include <stdlib.h>
#include <string.h>

#include "errors/errors.h"
#include "parts/part-plan.h"

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
  size_t bytes = ps_part_index_bytes(slice.row_count, slice.inner_count, PS_INDEX_NUMBER_BYTES);
  uint8_t *index = malloc(bytes);
  if (index == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for an index");
  ps_write_part_entry(draft, &slice);
  ps_write_part_index(&slice, PS_INDEX_NUMBER_BYTES, index);
  pserver_status status = ps_draft_end_and_append(draft, index, bytes);
  free(index);
  return status;
}

static size_t number_bytes(const struct ps_parameter *parameter, const struct ps_part_block *part) {
  return ps_packed_number_bytes(parameter, part->index, part->inner_numbers != NULL);
}

size_t ps_packed_part_bytes(const struct ps_parameter *parameter, const struct ps_part_block *part) {
  if (part == NULL || part->is_whole_block) return 0;
  return ps_part_index_bytes(part->row_count, part->inner_count, number_bytes(parameter, part));
}

void ps_pack_read_entry(struct ps_draft *draft, uint32_t index, const struct ps_part_block *part) {
  bool is_part = part != NULL && !part->is_whole_block;
  bool has_inner = is_part && part->inner_numbers != NULL;
  ps_pack_list(draft, 1 + (size_t)is_part + (size_t)has_inner);
  ps_pack_whole(draft, index);
  if (is_part) ps_pack_whole(draft, part->row_count);
  if (has_inner) ps_pack_whole(draft, part->inner_count);
}

size_t ps_write_packed_part(const struct ps_parameter *parameter, const struct ps_part_block *part,
                            uint8_t *target) {
  if (part == NULL || part->is_whole_block) return 0;
  struct ps_part_slice slice = index_of(part);
  return ps_write_part_index(&slice, number_bytes(parameter, part), target);
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
