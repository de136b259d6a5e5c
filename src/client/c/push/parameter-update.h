#ifndef PUSH_PARAMETER_UPDATE_H
#define PUSH_PARAMETER_UPDATE_H

#include <pserver.h>

#include "calls/parameter.h"
#include "push/update-source.h"

/** What a record does. */
enum ps_operation {
  PS_UPDATE_INIT,
  PS_UPDATE_SET,
  PS_UPDATE_MIX,
  PS_UPDATE_GRADIENT,
  PS_UPDATE_CLOCK,
  PS_UPDATE_NOTE,
};

/** Whether the record concerns no block: a clock or a note. */
static inline bool ps_is_blockless(enum ps_operation operation) {
  return operation == PS_UPDATE_CLOCK || operation == PS_UPDATE_NOTE;
}

/** Returns the name of an operation on blocks in messages. */
const char *ps_verb_of(enum ps_operation operation);

/** What a call does to one parameter. A clock and a note have no parameter. */
struct ps_parameter_update {
  enum ps_operation operation;
  struct ps_parameter *parameter;
  /** Whether the call has an earlier update of the same parameter. */
  bool is_repeated;
  /** All elements of the tensor, or of the part; any alignment. */
  const uint8_t *data;
  pserver_encoding encoding;
  /** L2 norm of all elements that the call sends for the parameter, as encoded, if hosts need it. */
  bool has_norm;
  double norm;
  double alpha;
  double beta;
  bool has_rate;
  double rate;
  /** The checked entries of a note. */
  const pserver_note_entry *note;
  size_t note_count;
  /** Versions of the blocks when they were last read, 0: never; NULL unless it is a gradient. */
  const uint64_t *seen;
};

/** Checks a tensor that a caller gave for a name. BAD_NAME, BAD_VALUE, BAD_DTYPE, BAD_SHAPE. */
pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor);
/** Checks that a tensor has the parameter's type, this shape, and so many elements; also BAD_LENGTH. */
pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements);

/** BAD_LENGTH for a tensor with a wrong number of bytes. */
pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received);

/** BAD_SHAPE for a shape that no parameter can have; `expected` describes a valid one. */
pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received);

/** NON_FINITE if an element is not finite, possibly only as encoded, and the parameter does not allow it. */
pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements);

/** Makes the sources of all blocks of the update's parameter; `sources` has memory for them. */
void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_update_source *sources);

/** Writes elements, at any alignment, in the update's encoding. */
void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target);

#endif
