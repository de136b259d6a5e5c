#include "pull/pull.h"

#include <stdlib.h>

/* Divides the blocks to be read among requests, in the same way as the TypeScript client. */

/** Maximum bytes of an entry in the columns of a request, besides its lists: four numbers and a version. */
#define ENTRY_COLUMN_BYTES 24
/** A block that the caller knows counts a quarter of its bytes, because most of these have not changed. */
#define KNOWN_DIVISOR 4
/** Maximum bytes of a request without its columns. */
#define HEAD_BYTES 1024

/** Stands for the number of a read that is in no request of the plan. */
#define IN_NO_REQUEST SIZE_MAX

/** The batch of a shard that is being filled. */
struct open_batch {
  /** NULL: no batch. */
  struct ps_read_request *request;
  /** Expected bytes of the answer, times KNOWN_DIVISOR. */
  uint64_t expected;
  /** Numbers in the lists of parts. */
  size_t listed;
};

struct planner {
  size_t message_bytes_max;
  struct ps_read_plan *plan;
  struct open_batch open[PS_SHARDS_MAX];
};

bool ps_read_is_of_part(const struct ps_block_read *read) {
  return read->part != NULL && !read->part->is_whole_block;
}

/** Adds a block to a batch; false if it does not fit. The first block of a batch may have any size. */
static bool add(const struct planner *planner, struct open_batch *batch,
                const struct ps_block_read *read) {
  struct ps_read_request *request = batch->request;
  size_t bytes = ps_read_bytes(read);
  uint64_t expected = batch->expected + (ps_read_is_known(read) ? bytes : bytes * KNOWN_DIVISOR);
  size_t listed = batch->listed;
  if (ps_read_is_of_part(read)) listed += read->part->row_count + read->part->inner_count;
  if (request->count > 0) {
    size_t column_bytes = (request->count + 1) * ENTRY_COLUMN_BYTES + listed * sizeof(uint32_t);
    if (request->count >= PS_BATCH_ENTRIES_MAX) return false;
    if (expected > (uint64_t)PS_BATCH_BYTES * KNOWN_DIVISOR) return false;
    if (HEAD_BYTES + column_bytes > planner->message_bytes_max) return false;
  }
  request->count++;
  request->bytes += bytes;
  batch->expected = expected;
  batch->listed = listed;
  return true;
}

static struct ps_read_request *begin_request(struct planner *planner, unsigned shard) {
  struct ps_read_request *request = &planner->plan->requests[planner->plan->count++];
  *request = (struct ps_read_request){.shard = shard};
  return request;
}

static struct ps_read_request *ask_alone(struct planner *planner, const struct ps_block_read *read,
                                         unsigned shard) {
  struct ps_read_request *request = begin_request(planner, shard);
  request->count = 1;
  request->bytes = ps_read_bytes(read);
  return request;
}

static struct ps_read_request *ask_together(struct planner *planner, const struct ps_block_read *read,
                                            unsigned shard) {
  struct open_batch *batch = &planner->open[shard];
  if (batch->request == NULL || !add(planner, batch, read)) {
    *batch = (struct open_batch){.request = begin_request(planner, shard)};
    batch->request->is_batch = true;
    add(planner, batch, read);
  }
  return batch->request;
}

/** Returns the request for a block. */
static struct ps_read_request *request_for(struct planner *planner, const struct ps_block_read *read) {
  unsigned shard = ps_shard_of_block(read->parameter, read->index);
  bool is_large = ps_read_bytes(read) >= PS_BATCH_ENTRY_BYTES_MAX && !ps_read_is_known(read);
  return is_large ? ask_alone(planner, read, shard) : ask_together(planner, read, shard);
}

/** Assigns the blocks to their requests; `number[i]` is the index of the request for read i. */
static void hand_out(struct ps_read_plan *plan, struct ps_block_read *reads, size_t count,
                     const size_t *number) {
  struct ps_block_read **next = plan->blocks;
  for (size_t i = 0; i < plan->count; i++) {
    plan->requests[i].blocks = next;
    next += plan->requests[i].count;
    plan->requests[i].count = 0;
  }
  for (size_t i = 0; i < count; i++) {
    if (number[i] == IN_NO_REQUEST) continue;
    struct ps_read_request *request = &plan->requests[number[i]];
    request->blocks[request->count++] = &reads[i];
  }
  for (size_t i = 0; i < plan->count; i++) {
    struct ps_read_request *request = &plan->requests[i];
    bool is_alone = request->count == 1 && !ps_read_is_known(request->blocks[0]);
    request->is_batch = request->is_batch && !is_alone;
  }
}

pserver_status ps_plan_reads(struct ps_block_read *reads, size_t count, size_t message_bytes_max,
                             struct ps_read_plan *plan) {
  struct planner planner = {.message_bytes_max = message_bytes_max, .plan = plan};
  size_t *number = malloc(count * sizeof *number);
  *plan = (struct ps_read_plan){.requests = malloc(count * sizeof *plan->requests),
                                .blocks = malloc(count * sizeof(struct ps_block_read *))};
  if (number == NULL || plan->requests == NULL || plan->blocks == NULL) {
    free(number);
    return ps_no_memory("%zu requests", count);
  }
  for (size_t i = 0; i < count; i++) {
    bool is_wanted = ps_read_is_wanted(&reads[i]);
    number[i] = is_wanted ? (size_t)(request_for(&planner, &reads[i]) - plan->requests) : IN_NO_REQUEST;
  }
  hand_out(plan, reads, count, number);
  free(number);
  return PSERVER_OK;
}

void ps_read_plan_release(struct ps_read_plan *plan) {
  free(plan->requests);
  free(plan->blocks);
}
