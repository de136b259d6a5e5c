#ifndef PULL_BLOCK_READ_H
#define PULL_BLOCK_READ_H

#include "calls/call.h"
#include "calls/parameter.h"

struct ps_part_block;

/** The state of a block that was read. */
struct ps_block_state {
  /** Version of the block under the parameter's epoch; 0 for none. */
  uint64_t version;
  /** Generation of the shard's journal: another one may give the same version to other values. */
  uint64_t generation;
};

/** One block, or part of one, to be read. */
struct ps_block_read {
  struct ps_parameter *parameter;
  uint32_t index;
  pserver_encoding encoding;
  /** Where the tensor's values begin; the block's own place follows from its index or the part. */
  uint8_t *target;
  /** Grows to the version of the block; NULL if it does not matter. */
  uint64_t *version;
  /** NULL: the whole block. */
  const struct ps_part_block *part;
  /** Set if the parameter was initialized anew while it was read: all of it must be read again. */
  bool *is_replaced;
  /** The state that the caller has the values of. */
  struct ps_block_state known;
  /** Receives the state that was read; NULL if it does not matter. */
  struct ps_block_state *state;

  /** Set by ps_read_blocks(). */
  bool is_done;
  /** Whether the block still has the known state; then nothing was written. */
  bool is_unchanged;
};

/**
 * Reads blocks, as many at once as the window admits, not at one moment. Of a parameter that turns out to be
 * replaced nothing more is read.
 */
pserver_status ps_read_blocks(struct ps_call *call, struct ps_block_read *reads, size_t count);

/** The shard that owns the block. */
unsigned ps_read_shard(const struct ps_block_read *read);

/** Elements of its values, and their bytes in an answer. */
uint64_t ps_read_elements(const struct ps_block_read *read);
size_t ps_read_bytes(const struct ps_block_read *read);

/** Whether it is still to be read. */
bool ps_read_is_wanted(const struct ps_block_read *read);

/** Whether the caller has values of the block. */
bool ps_read_is_known(const struct ps_block_read *read);

/**
 * Ends a read: puts the values, as they came, to their places; `data` NULL: the block still has the known
 * state. INTERNAL without memory: then the read has not ended.
 */
pserver_status ps_read_take(struct ps_block_read *read, const uint8_t *data, struct ps_block_state state);

#endif
