#ifndef PULL_READ_PLAN_H
#define PULL_READ_PLAN_H

#include "core/positions.h"
#include "pull/block-read.h"

struct ps_client;

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
  /** Why the request failed, if other requests shall follow: see read-blocks.c. */
  enum { PS_READ_GOES_ON, PS_READ_IS_STALE, PS_READ_HAS_NO_OWNER, PS_READ_IS_DENIED } problem;
};

/** How the blocks of a shard are requested. */
enum ps_read_way {
  /** Small ones in batches. */
  PS_READ_TOGETHER,
  /** Only the first, singly; the others wait until it is read. */
  PS_READ_FIRST,
  /** Each singly. */
  PS_READ_SINGLY,
};

/** Options of plans. */
struct ps_read_plan_options {
  enum ps_read_way way[PS_SHARDS_MAX];
  /** The largest message that the broker accepts. */
  size_t message_bytes_max;
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
 * one piece of an answer; large blocks singly, so that neither wait for the other. Release the plan also
 * after an error. INTERNAL.
 */
pserver_status ps_plan_reads(struct ps_block_read *reads, size_t count,
                             const struct ps_read_plan_options *options, struct ps_read_plan *plan);
void ps_read_plan_release(struct ps_read_plan *plan);

/** Whether consecutive entries of two reads are in the same group of a batched read. */
bool ps_reads_share_group(const struct ps_block_read *a, const struct ps_block_read *b);

#endif
