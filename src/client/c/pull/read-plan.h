#ifndef PULL_READ_PLAN_H
#define PULL_READ_PLAN_H

#include "core/positions.h"
#include "pull/block-read.h"

struct ps_client;

/** Blocks that are asked for together: one by its own subject, or several of a shard. */
struct ps_read_request {
  bool is_batch;
  unsigned shard;
  /** The entries of a batch, in their order; or one block. */
  struct ps_block_read **blocks;
  size_t count;
  /** Bytes of the answer if every block has changed. */
  size_t bytes;

  /** State of the request. */
  struct ps_client *client;
  /** The lowest step that any sending of the request has waited for; 0 for none. */
  uint64_t step;
  /** The first entry that has not come. */
  size_t next;
  /** Why it has ended, if it has to be asked again: see read-blocks.c. */
  enum { PS_READ_GOES_ON, PS_READ_IS_STALE, PS_READ_HAS_NO_OWNER, PS_READ_IS_DENIED } problem;
};

/** How the blocks of a shard are asked for. */
enum ps_read_way {
  /** Small ones together. */
  PS_READ_TOGETHER,
  /** Only the first of them, by its own subject: the others wait until it has come. */
  PS_READ_FIRST,
  /** Each by its own subject. */
  PS_READ_SINGLY,
};

/** How requests are made of blocks. */
struct ps_read_plan_options {
  enum ps_read_way way[PS_SHARDS_MAX];
  /** The largest message that the broker takes. */
  size_t message_bytes_max;
};

/** Requests, in the order of their first blocks. */
struct ps_read_plan {
  struct ps_read_request *requests;
  size_t count;
  /** What the requests point into. */
  struct ps_block_read **blocks;
};

/**
 * Divides the reads that are not done among requests. Small blocks of a shard are asked for together, as many
 * as one piece of an answer takes; a large one is asked for alone, so that neither waits for the other.
 * Release the plan, also after an error. INTERNAL without memory.
 */
pserver_status ps_plan_reads(struct ps_block_read *reads, size_t count,
                             const struct ps_read_plan_options *options, struct ps_read_plan *plan);
void ps_read_plan_release(struct ps_read_plan *plan);

/** Whether the entries of two reads stand in one group of a batched read, if they follow each other. */
bool ps_reads_share_group(const struct ps_block_read *a, const struct ps_block_read *b);

#endif
