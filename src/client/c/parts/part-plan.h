#ifndef PARTS_PART_PLAN_H
#define PARTS_PART_PLAN_H

#include "calls/parameter.h"
#include "parts/part-slice.h"
#include "wire/envelope.h"

/** Places in a list that go together: place `tensor[i]` of the caller's with `message[i]`. */
struct ps_matching {
  uint64_t *tensor;
  uint32_t *message;
  size_t count;
};

/**
 * What a part has of one block. Element `rows.tensor[i] · tensor_row_elements + inner.tensor[j]` of the
 * caller's tensor is element `rows.message[i] · message_row_elements + inner.message[j]` of the
 * message. Without `inner` rows go as they are.
 */
struct ps_part_block {
  uint32_t index;
  /** Numbers that travel, ascending; `inner_numbers` NULL: whole rows. */
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

/** A part of a parameter, cut along its blocks. */
struct ps_part_plan {
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t elements;
  struct ps_part_block *blocks;
  size_t count;
  /** What the blocks point into: the numbers of all of them, block after block. */
  uint32_t *numbers;
  struct ps_matching rows;
  /** Of a parameter cut between rows: which elements of each row; `inner_numbers` NULL: all. */
  uint32_t *inner_numbers;
  struct ps_matching inner;
  /** Of another: which elements of each block. */
  struct ps_matching *block_inner;
};

/**
 * Cuts the cartesian product of index lists along a parameter's blocks; release it with
 * ps_part_plan_release(), also after an error. BAD_INDEX, BAD_VALUE, TOO_LARGE.
 */
pserver_status ps_plan_part(const struct ps_parameter *parameter, const pserver_indices *indices,
                            size_t rank, struct ps_part_plan *plan);
/** The same for whole rows of a parameter that is cut between rows; `rows` lie within it. */
pserver_status ps_plan_rows(const struct ps_parameter *parameter, const uint64_t *rows, size_t count,
                            struct ps_part_plan *plan);
void ps_part_plan_release(struct ps_part_plan *plan);

uint64_t ps_part_elements(const struct ps_part_block *part);

/** Ends a pull's message with entry and index of a part. */
pserver_status ps_write_part_request(struct ps_draft *draft, const struct ps_part_block *part);

/** Bytes of the packed index of a part in a batched read; 0 for whole blocks, as is NULL. */
size_t ps_packed_part_bytes(const struct ps_parameter *parameter, const struct ps_part_block *part);

/** Packs the row of a block in a batched read; `part` NULL for a whole one. */
void ps_pack_read_entry(struct ps_draft *draft, uint32_t index, const struct ps_part_block *part);

/** Writes the packed index of a part; returns the bytes it took. */
size_t ps_write_packed_part(const struct ps_parameter *parameter, const struct ps_part_block *part,
                            uint8_t *target);

/** Puts a message's elements to their places in the tensor, each as often as it is named. */
void ps_scatter_part(const struct ps_part_block *part, size_t element_bytes, const uint8_t *message,
                     uint8_t *tensor);

#endif
