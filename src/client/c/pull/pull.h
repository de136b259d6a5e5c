#ifndef PULL_PULL_H
#define PULL_PULL_H

#include "calls/call.h"
#include "calls/parameter.h"

struct part_block;

/** One block to be read. */
struct block_read {
  struct parameter *parameter;
  uint32_t index;
  pserver_encoding encoding;
  /** Where the tensor's values begin; the block's own place follows from its index or the part. */
  uint8_t *target;
  /** Grows to the version of the block; NULL if it does not matter. */
  uint64_t *version;
  /** NULL: the whole block. */
  const struct part_block *part;
  /** Set if the parameter was initialized anew while it was read: all must be read again. */
  bool *is_replaced;

  /** State of ps_read_blocks(). */
  /** The step that every sending of the request has waited for; 0 for none. */
  uint64_t step;
  struct client *client;
  /** Whether an answer says that the parameter is to be looked up before it is asked again. */
  bool must_look_up;
};

/** Reads blocks, as many at once as the window admits. */
pserver_status ps_read_blocks(struct call *call, struct block_read *reads, size_t count);

/** pserver_get_with() within a call. */
pserver_status ps_pull_parameters(struct call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options);

/** BAD_VALUE for options that make no sense. */
pserver_status ps_check_read_options(const struct call *call, const pserver_read_options *options);

/** UNSUPPORTED for an encoding of another type than float32. */
pserver_status ps_check_read_encoding(const struct parameter *parameter, pserver_encoding encoding);

/** A tensor for values of a parameter: allocated if `data` is NULL, else BAD_DTYPE, BAD_LENGTH unless it
 * fits. `was_allocated` says which. */
pserver_status ps_prepare_target(const struct parameter *parameter, const uint64_t *shape, int32_t rank,
                                 uint64_t elements, pserver_tensor *tensor, bool *was_allocated);

#endif
