#ifndef PULL_BLOCK_READ_H
#define PULL_BLOCK_READ_H

#include "calls/call.h"
#include "calls/parameter.h"

struct ps_part_block;

/** The state that a block had when it was read. */
struct ps_block_state {
  /** Version of the block in the parameter's epoch; 0: none. */
  uint64_t version;
  /** Generation of the shard's journal: in another one, the same version may have other values. */
  uint64_t generation;
};

/** One block, or part of one, to be read. */
struct ps_block_read {
  struct ps_parameter *parameter;
  uint32_t index;
  pserver_encoding encoding;
  /** The beginning of the tensor's values; where the block's go follows from its index or the part. */
  uint8_t *target;
  /** Raised to the version of the block; may be NULL. */
  uint64_t *version;
  /** NULL: the whole block. */
  const struct ps_part_block *part;
  /** Set if the parameter is initialized anew meanwhile: all of it must be read again. */
  bool *is_replaced;
  /** The state whose values the caller has; version 0: none. */
  struct ps_block_state known;
  /** Receives the state that was read; may be NULL. */
  struct ps_block_state *state;

  /** Set by ps_read_blocks(): whether the block is read. */
  bool is_done;
  /** Set by ps_read_blocks(): whether the block still has the known state, so that nothing was written. */
  bool is_unchanged;
};

/**
 * Reads blocks and waits, as many at a time as the window permits; their values are not of one moment.
 * Stops reading the blocks of a parameter that is initialized anew meanwhile.
 */
pserver_status ps_read_blocks(struct ps_call *call, struct ps_block_read *reads, size_t count);

/** Returns the shard of the block. */
unsigned ps_read_shard(const struct ps_block_read *read);

/** Returns the number of elements to be read, and their bytes in an answer. */
uint64_t ps_read_elements(const struct ps_block_read *read);
size_t ps_read_bytes(const struct ps_block_read *read);

/** Whether it is still to be read. */
bool ps_read_is_wanted(const struct ps_block_read *read);

/** Whether the caller has values of the block. */
bool ps_read_is_known(const struct ps_block_read *read);

/**
 * Completes a read with the values in an answer; `data` NULL: the block still has the known state. INTERNAL
 * if there is no memory; then the read is not complete.
 */
pserver_status ps_read_take(struct ps_block_read *read, const uint8_t *data, struct ps_block_state state);

#endif
