#ifndef PARTS_PART_SLICE_H
#define PARTS_PART_SLICE_H

#include "calls/parameter.h"
#include "wire/envelope.h"

/**
 * Some elements of one block, as one message carries them: rows of the block, and of these all elements
 * or those at some offsets. An element of the caller's tensor is found for each: that of row i and
 * offset j is element `row_from[i] + inner_from[j]` of it, or `row_from[i] + j` where `inner_from` is NULL.
 */
struct ps_part_slice {
  /** Numbers of rows, and offsets in a row, ascending, as they travel; `inner` NULL: whole rows. */
  const uint32_t *rows;
  size_t row_count;
  const uint32_t *inner;
  size_t inner_count;
  const uint64_t *row_from;
  const uint64_t *inner_from;
  /** Elements that a row of the slice has. */
  uint64_t width;
  /** Whether it is the block, all of it, which travels without an index. */
  bool is_whole_block;
};

/** Bytes of each number of an index that is not packed: of a single record, or of a pull. */
#define PS_INDEX_NUMBER_BYTES 4

/**
 * Bytes of each number of a packed index of this block, as batch records and batched reads have them: 2
 * where every possible number fits, else 4. `has_inner`: it has offsets in a row besides rows.
 */
size_t ps_packed_number_bytes(const struct ps_parameter *parameter, uint64_t block, bool has_inner);

/** Bytes before the elements of a part whose index has numbers of so many bytes each. */
size_t ps_part_index_bytes(size_t row_count, size_t inner_count, size_t number_bytes);

/** The same of a slice: none before a whole block. */
size_t ps_slice_index_bytes(const struct ps_part_slice *slice, size_t number_bytes);

/** The entry `part` of a message. */
void ps_write_part_entry(struct ps_draft *draft, const struct ps_part_slice *slice);

/** The index, in numbers of so many bytes, where tensor bytes begin; returns the bytes it took. */
size_t ps_write_part_index(const struct ps_part_slice *slice, size_t number_bytes, uint8_t *target);

#endif
