#ifndef PARTS_PART_SLICE_H
#define PARTS_PART_SLICE_H

#include "calls/parameter.h"
#include "wire/envelope.h"

/**
 * The elements of one block that one message carries: all elements of some rows, or those at some offsets
 * in the rows. That of row i and offset j is element `row_from[i] + inner_from[j]` of the caller's tensor,
 * or `row_from[i] + j` if `inner_from` is NULL.
 */
struct ps_part_slice {
  /** Row numbers and offsets within a row, ascending, as in messages; `inner` NULL: whole rows. */
  const uint32_t *rows;
  size_t row_count;
  const uint32_t *inner;
  size_t inner_count;
  const uint64_t *row_from;
  const uint64_t *inner_from;
  /** Elements in each row of the slice. */
  uint64_t width;
  /** Whether it is the whole block, which messages carry without an index. */
  bool is_whole_block;
};

/** Bytes of each number of an index that is not packed: in a record of one block, or in a pull. */
#define PS_INDEX_NUMBER_BYTES 4

/**
 * Returns the bytes of each number of a packed index of this block, in batch records and batched reads: 2
 * if every possible number fits, otherwise 4. `has_inner`: the index has offsets within rows besides rows.
 */
size_t ps_packed_number_bytes(const struct ps_parameter *parameter, uint64_t block, bool has_inner);

/** Returns the bytes of an index with numbers of so many bytes, padded to a multiple of 8. */
size_t ps_part_index_bytes(size_t row_count, size_t inner_count, size_t number_bytes);

/** Returns the bytes of the index of a slice; 0 for a whole block. */
size_t ps_slice_index_bytes(const struct ps_part_slice *slice, size_t number_bytes);

/** Writes the entry `part` of a message. */
void ps_write_part_entry(struct ps_draft *draft, const struct ps_part_slice *slice);

/** Writes the index of a slice, in numbers of so many bytes, to `target`; returns its bytes. */
size_t ps_write_part_index(const struct ps_part_slice *slice, size_t number_bytes, uint8_t *target);

#endif
