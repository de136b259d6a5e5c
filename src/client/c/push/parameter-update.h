#ifndef PUSH_PARAMETER_UPDATE_H
#define PUSH_PARAMETER_UPDATE_H

#include <pserver.h>

#include "calls/parameter.h"
#include "push/update-source.h"

enum ps_operation { PS_UPDATE_INIT, PS_UPDATE_SET, PS_UPDATE_MIX, PS_UPDATE_GRADIENT, PS_UPDATE_CLOCK, PS_UPDATE_NOTE };

/** Whether an update is about no block: a clock, which tells shards of a step, or a note. */
static inline bool ps_is_blockless(enum ps_operation operation) {
  return operation == PS_UPDATE_CLOCK || operation == PS_UPDATE_NOTE;
}

/** What messages call an operation on blocks. */
const char *ps_verb_of(enum ps_operation operation);

/** What a call does to one parameter; a clock and a note have none. */
struct ps_parameter_update {
  enum ps_operation operation;
  struct ps_parameter *parameter;
  /** Whether an earlier update of the call is of the parameter, too. */
  bool is_repeated;
  /** All elements of the tensor, or of the part; any alignment. */
  const uint8_t *data;
  pserver_encoding encoding;
  /** L2 norm of all elements that the call sends of the parameter, as they travel, if it has to be known. */
  bool has_norm;
  double norm;
  double alpha;
  double beta;
  bool has_rate;
  double rate;
  /** Of a note: its entries, which were checked. */
  const pserver_note_entry *note;
  size_t note_count;
  /** Versions of the blocks at the last pull, 0 where none was; NULL unless it is a gradient. */
  const uint64_t *seen;
};

/**
 * Checks a tensor that a caller gave for a parameter. BAD_VALUE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH. With a
 * `parameter`, it must fit that; `shape` and `rank` then are what is expected.
 */
pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor);
pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements);

/** BAD_LENGTH for a tensor of a wrong number of bytes. */
pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received);

/** BAD_SHAPE for a shape that no parameter can have; `expected` says what is. */
pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received);

/** NON_FINITE if an element is not, maybe only as it travels, and the parameter does not allow that. */
pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements);

/** The source of each block of the update's parameter; `sources` has room for them. */
void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_update_source *sources);

/** Writes elements, at any alignment, as they travel in the update's encoding. */
void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target);

#endif
