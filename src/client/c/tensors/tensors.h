#ifndef TENSORS_TENSORS_H
#define TENSORS_TENSORS_H

/* Tensors of callers and parts of them: their checks, and how they are cut along the blocks of a parameter. */

#include "calls/calls.h"

/** Checks a tensor that a caller gave for a name. BAD_NAME, BAD_VALUE, BAD_DTYPE, BAD_SHAPE. */
pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor);
/** Checks that a tensor has the parameter's type, this shape, and so many elements; also BAD_LENGTH, BAD_VALUE. */
pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements);

/** Fails with BAD_VALUE for a tensor of bools with a byte that is neither 0 nor 1. */
pserver_status ps_check_bools(const char *name, const pserver_tensor *tensor);

/** Fails with BAD_LENGTH for a tensor with a wrong number of bytes. */
pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received);

/** Fails with BAD_SHAPE for a shape that no parameter can have; `expected` describes a valid one. */
pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received);

/**
 * Fails with BAD_VALUE unless options of a call have the size that this version knows, and a known encoding.
 */
pserver_status ps_check_options(const char *what, size_t expected, size_t received, const char *init,
                                pserver_encoding encoding);

/**
 * Fails with UNSUPPORTED if the parameter's type cannot have the encoding; with BAD_VALUE for an unknown one.
 */
pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/** Fails with UNSUPPORTED for an encoding unless the parameter is of float32. */
pserver_status ps_check_read_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/**
 * Fails with NON_FINITE if an element is not finite, possibly only as encoded, and the parameter does not
 * allow it.
 */
pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements);

/**
 * Returns the L2 norm of elements, at any alignment, as encoded without groups; 0 for integers. It is NaN or infinite
 * exactly if an encoded element is.
 */
double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements);

/** A number of a list, and its index there. */
struct ps_numbered {
  uint64_t number;
  uint64_t place;
};

/**
 * Sorts a list by number; equal numbers keep their order. Takes time in proportion to the list and to the
 * digits of `most`, an upper bound of the numbers. False if there is no memory.
 */
bool ps_sort_numbered(struct ps_numbered *list, size_t count, uint64_t most);

/**
 * The elements of a parameter that index lists name, in the order of the caller's tensor: in each of the
 * rows, those at the offsets. A scalar has one row of one element.
 */
struct ps_part_index {
  /** Lengths of the lists: the shape of the caller's tensor. A dimension may be 0. */
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t elements;
  /** Row numbers; NULL if there are no elements. */
  uint64_t *rows;
  size_t row_count;
  /** Offsets within a row, `width` of them; NULL: all elements of a row, in their order. */
  uint64_t *offsets;
  uint64_t width;
};

/**
 * Reads one list for each dimension; negative numbers count from the dimension's end. Release the index with
 * ps_part_index_release(), also after an error. BAD_INDEX, BAD_VALUE; TOO_LARGE for 2^32 elements or more.
 */
pserver_status ps_read_part_index(const struct ps_parameter *parameter, const pserver_indices *indices,
                                  size_t rank, struct ps_part_index *index);

void ps_part_index_release(struct ps_part_index *index);

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

/** Bytes of each number of an index. */
#define PS_INDEX_NUMBER_BYTES 4

/** Returns the bytes of the index of a slice in a record of its own; 0 for a whole block. */
size_t ps_slice_index_bytes(const struct ps_part_slice *slice);

/** Writes the entry `part` of a message. */
void ps_write_part_entry(struct ps_draft *draft, const struct ps_part_slice *slice);

/** Writes the index of a slice as a record of its own has it to `target`; returns its bytes. */
size_t ps_write_part_index(const struct ps_part_slice *slice, uint8_t *target);

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
  /** In a parameter that is cut between rows, the elements of each row; `inner_numbers` NULL: all. */
  uint32_t *inner_numbers;
  struct ps_matching inner;
  /** In any other parameter, the elements of each block. */
  struct ps_matching *block_inner;
};

/**
 * Cuts the cartesian product of index lists along a parameter's blocks; release it with
 * ps_part_plan_release(), also after an error. BAD_INDEX, BAD_VALUE, TOO_LARGE.
 */
pserver_status ps_plan_part(const struct ps_parameter *parameter, const pserver_indices *indices,
                            size_t rank, struct ps_part_plan *plan);
/**
 * Cuts whole rows, from 0 to the last, of a parameter that is cut between rows; release it as after
 * ps_plan_part().
 */
pserver_status ps_plan_rows(const struct ps_parameter *parameter, const uint64_t *rows, size_t count,
                            struct ps_part_plan *plan);
void ps_part_plan_release(struct ps_part_plan *plan);

/** Returns the number of elements of the part in messages. */
uint64_t ps_part_elements(const struct ps_part_block *part);

/** Ends the message of a pull with the entry and the index of a part. */
pserver_status ps_write_part_request(struct ps_draft *draft, const struct ps_part_block *part);

/** Copies a message's elements to the tensor, each as often as the part names it. */
void ps_scatter_part(const struct ps_part_block *part, size_t element_bytes, const uint8_t *message,
                     uint8_t *tensor);

#endif
