#ifndef PULL_PULL_H
#define PULL_PULL_H

/* Calls that read: parameters are read block by block (ps_block_read), in requests that a plan makes. */

#include "client/client.h"

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
  /** Set if the parameter is initialized again before all is read: all of it must be read again. */
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
 * Reads blocks and waits, as many at a time as the window permits; their values are not of one moment. Stops
 * reading the blocks of a parameter once that has been initialized again.
 */
pserver_status ps_read_blocks(struct ps_call *call, struct ps_block_read *reads, size_t count);

/** Returns the number of elements to be read, and their bytes in an answer. */
uint64_t ps_read_elements(const struct ps_block_read *read);
size_t ps_read_bytes(const struct ps_block_read *read);

/** Whether the block is still to be read. */
bool ps_read_is_wanted(const struct ps_block_read *read);

/** Whether only a part of the block is read. */
bool ps_read_is_of_part(const struct ps_block_read *read);

/** Whether the caller has values of the block. */
bool ps_read_is_known(const struct ps_block_read *read);

/**
 * Completes a read with the values in an answer; `data` NULL: the block still has the known state. INTERNAL
 * if there is no memory, BAD_MESSAGE for values that cannot be decoded; then the read is not complete.
 */
pserver_status ps_read_take(struct ps_block_read *read, const uint8_t *data, struct ps_block_state state);

/** The versions that one tensor was read from. */
struct ps_origin {
  /** With one reference; NULL if nothing was read. */
  struct ps_parameter *parameter;
  pserver_encoding encoding;
  /** The state of each of its blocks; `has_own_blocks`: in memory of its own. */
  struct ps_block_state *blocks;
  bool has_own_blocks;
};

/** The versions that the tensors of one call were read from: see pserver.h. Never changes after the call. */
struct pserver_origins {
  /** Number of the client that has read them; versions mean nothing in other jobs. */
  uint64_t client;
  /** The states of all blocks, except of parameters that were initialized again during the call. */
  struct ps_block_state *states;
  size_t count;
  struct ps_origin list[];
};

/**
 * Makes origins, without states, for parameters that a client is about to read. INTERNAL; free them also
 * then.
 */
pserver_status ps_origins_new(uint64_t client, struct ps_parameter *const *parameters, size_t count,
                              pserver_encoding encoding, pserver_origins **origins);

/** Reads parameters as pserver_get_with() does, within a call. */
pserver_status ps_pull_parameters(struct ps_call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options);

/** Whether the trainers of the job contribute to rounds of fragments. */
bool ps_has_rounds(struct ps_call *call);

/** Fails with UNSUPPORTED unless the job has rounds. */
pserver_status ps_require_rounds(struct ps_call *call);

/**
 * Tells a version of a fragment, `min_version` or later, and whether the trainer may contribute to the round after it;
 * waits until the trainer is a member in the fragment's shard. BAD_VALUE for a parameter of another fragment.
 */
pserver_status ps_ask_sampling(struct ps_call *call, const char *fragment, const char *parameter,
                               uint64_t min_version, uint64_t *version, bool *is_sampled);

/** Fails with BAD_VALUE unless the parameter belongs to the fragment. */
pserver_status ps_check_fragment(const struct ps_parameter *parameter, const char *fragment);

/** A request for blocks: for one block (a pull), or for several of a shard (a batched read). */
struct ps_read_request {
  bool is_batch;
  unsigned shard;
  /** The entries of a batch in order, or the one block. */
  struct ps_block_read **blocks;
  size_t count;
  /** Bytes of the answer if every block has changed. */
  size_t bytes;

  /** Set while the request is under way. */
  struct ps_client *client;
  /** The lowest step that the request has waited for, of all times it was sent; 0: none. */
  uint64_t step;
  /** Index of the first entry that is not read. */
  size_t next;
  /** Whether the request failed because its parameters may have been replaced: look them up again. */
  bool is_stale;
};

/** Requests, in the order of their first blocks. */
struct ps_read_plan {
  struct ps_read_request *requests;
  size_t count;
  /** Memory that the requests point into. */
  struct ps_block_read **blocks;
};

/**
 * Divides the reads that are not done among requests: small blocks of a shard together, as many as fit in
 * one chunk of an answer; large blocks singly, so that neither wait for the other. The broker accepts
 * messages of up to `message_bytes_max`. Release the plan also after an error. INTERNAL.
 */
pserver_status ps_plan_reads(struct ps_block_read *reads, size_t count, size_t message_bytes_max,
                             struct ps_read_plan *plan);
void ps_read_plan_release(struct ps_read_plan *plan);

/** Prepares the ps_ask of a request of a plan; the request must outlive it. */
void ps_ask_for_read(struct ps_read_request *request, struct ps_ask *ask);

#endif
