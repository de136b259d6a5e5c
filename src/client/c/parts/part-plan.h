#ifndef PARTS_PART_PLAN_H
#define PARTS_PART_PLAN_H

#include "calls/parameter.h"
#include "parts/part-slice.h"
#include "wire/envelope.h"

/** Pairs of indices of rows, or of elements in a row: `tensor[i]` in the caller's tensor is `message[i]` in
 * a message. */
struct ps_matching {
  uint64_t *tensor;
  uint32_t *message;
  size_t count;
};

/**
 * The elements of a part that lie in one block. Element `rows.tensor[i] · tensor_row_elements +
 * inner.tensor[j]` of the caller's tensor is element `rows.message[i] · message_row_elements +
 * inner.message[j]` of the message, for every i and j. `inner` NULL: a row of the tensor is a row of the
 * message.
 */
struct ps_part_block {
  uint32_t index;
  /** The index in messages: row numbers and offsets within a row, ascending; `inner_numbers` NULL: whole
   * rows. */
  uint32_t *row_numbers;
  size_t row_count;
  const uint32_t *inner_numbers;
  size_t inner_count;
  struct ps_matching rows;
  const struct ps_matching *inner;
  uint64_t tensor_row_elements;
  uint64_t message_row_elements;
  bool is_whole_block;
};

/** A part of a parameter, cut along the parameter's blocks. */
struct ps_part_plan {
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t elements;
  struct ps_part_block *blocks;
  size_t count;
  /** Memory that the blocks point into: row numbers and matchings of all blocks. */
  uint32_t *numbers;
  struct ps_matching rows;
  /** Of a parameter that is cut between rows: the elements of each row; `inner_numbers` NULL: all. */
  uint32_t *inner_numbers;
  struct ps_matching inner;
  /** Of any other parameter: the elements of each block. */
  struct ps_matching *block_inner;
};

/**
 * Cuts the cartesian product of index lists along a parameter's blocks; release it with
 * ps_part_plan_release(), also after an error. BAD_INDEX, BAD_VALUE, TOO_LARGE.
 */
pserver_status ps_plan_part(const struct ps_parameter *parameter, const pserver_indices *indices,
                            size_t rank, struct ps_part_plan *plan);
/** The same for whole rows, from 0 to the last, of a parameter that is cut between rows. */
pserver_status ps_plan_rows(const struct ps_parameter *parameter, const uint64_t *rows, size_t count,
                            struct ps_part_plan *plan);
void ps_part_plan_release(struct ps_part_plan *plan);

/** Returns the number of elements of the part in messages. */
uint64_t ps_part_elements(const struct ps_part_block *part);

/** Ends the message of a pull with the entry and the index of a part. */
pserver_status ps_write_part_request(struct ps_draft *draft, const struct ps_part_block *part);

/** Returns the bytes of the packed index of a part in a batched read; 0 for a whole block, also if it is
 * NULL. */
size_t ps_packed_part_bytes(const struct ps_parameter *parameter, const struct ps_part_block *part);

/** Packs the entry of a block in a batched read; `part` NULL: the whole block. */
void ps_pack_read_entry(struct ps_draft *draft, uint32_t index, const struct ps_part_block *part);

/** Writes the packed index of a part; returns its bytes. */
size_t ps_write_packed_part(const struct ps_parameter *parameter, const struct ps_part_block *part,
                            uint8_t *target);

/** Copies a message's elements to the tensor, each as often as the part names it. */
void ps_scatter_part(const struct ps_part_block *part, size_t element_bytes, const uint8_t *message,
                     uint8_t *tensor);

#endif
