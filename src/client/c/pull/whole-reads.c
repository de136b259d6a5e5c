/* Whole parameters are read, all blocks of all names in one window; what a reader has already stays. */
#include "pull/whole-reads.h"

#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "pull/origins.h"
#include "pull/pull.h"
#include "wire/dtypes.h"

/** One attempt: all is read again if a parameter was initialized anew meanwhile. */
struct attempt {
  const struct whole_reads *wanted;
  /** One each, in the order of the names. */
  struct parameter **parameters;
  bool *was_allocated;
  /** Made if the call is to tell what was read. */
  pserver_origins *origins;
  struct block_read *blocks;
  size_t block_count;
  bool is_replaced;
};

static bool allocate(struct attempt *attempt) {
  size_t count = attempt->wanted->count;
  attempt->parameters = calloc(count, sizeof *attempt->parameters);
  attempt->was_allocated = calloc(count, sizeof *attempt->was_allocated);
  return attempt->parameters != NULL && attempt->was_allocated != NULL;
}

static void release(struct attempt *attempt) {
  if (attempt->parameters != NULL) ps_parameters_unref(attempt->parameters, attempt->wanted->count);
  free(attempt->parameters);
  free(attempt->was_allocated);
  free(attempt->blocks);
  pserver_origins_free(attempt->origins);
}

static pserver_status prepare_targets(struct attempt *attempt) {
  const struct whole_reads *wanted = attempt->wanted;
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < wanted->count && status == PSERVER_OK; i++) {
    const struct parameter *parameter = attempt->parameters[i];
    status = ps_check_read_encoding(parameter, wanted->options->encoding);
    if (status != PSERVER_OK) return status;
    status = ps_prepare_target(parameter, parameter->shape, parameter->rank,
                               parameter->layout.elements, &wanted->tensors[i],
                               &attempt->was_allocated[i]);
  }
  return status;
}

/** The reads of a parameter's blocks. */
static void plan_blocks(struct attempt *attempt, size_t i, struct block_read *blocks) {
  const struct whole_reads *wanted = attempt->wanted;
  struct parameter *parameter = attempt->parameters[i];
  pserver_origins *origins = attempt->origins;
  const struct block_state *known = NULL;
  uint64_t *version = wanted->options->versions == NULL ? NULL : &wanted->options->versions[i];
  if (version != NULL) *version = 0;
  if (wanted->known != NULL) {
    known = ps_known_states(&wanted->known[i], origins->client, parameter, wanted->options->encoding);
  }
  for (uint32_t index = 0; index < parameter->layout.blocks; index++) {
    blocks[index] = (struct block_read){.parameter = parameter,
                                        .index = index,
                                        .encoding = wanted->options->encoding,
                                        .target = wanted->tensors[i].data,
                                        .version = version,
                                        .is_replaced = &attempt->is_replaced};
    if (known != NULL) blocks[index].known = known[index];
    if (origins != NULL) blocks[index].state = &origins->list[i].blocks[index];
  }
}

static pserver_status read_blocks(struct call *call, struct attempt *attempt) {
  size_t total = 0;
  size_t count = attempt->wanted->count;
  for (size_t i = 0; i < count; i++) total += attempt->parameters[i]->layout.blocks;
  attempt->block_count = total;
  attempt->blocks = calloc(total, sizeof *attempt->blocks);
  if (attempt->blocks == NULL) {
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", total);
  }
  struct block_read *next = attempt->blocks;
  for (size_t i = 0; i < count; i++) {
    plan_blocks(attempt, i, next);
    next += attempt->parameters[i]->layout.blocks;
  }
  return ps_read_blocks(call, attempt->blocks, total);
}

/** Copies the values of blocks that have not changed from where the reader has them. */
static void keep_blocks(const struct block_read *blocks, const pserver_tensor *tensor,
                        const uint8_t *known) {
  const struct parameter *parameter = blocks[0].parameter;
  size_t bytes = ps_dtype_bytes(parameter->dtype);
  if (tensor->data == known) return;
  for (uint64_t i = 0; i < parameter->layout.blocks; i++) {
    if (!blocks[i].is_unchanged) continue;
    size_t start = i * parameter->layout.block_elements * bytes;
    memcpy((uint8_t *)tensor->data + start, known + start, ps_block_elements(parameter, i) * bytes);
  }
}

static bool is_all_unchanged(const struct block_read *blocks) {
  for (uint64_t i = 0; i < blocks[0].parameter->layout.blocks; i++) {
    if (!blocks[i].is_unchanged) return false;
  }
  return true;
}

/** Completes the tensors with what the reader has; one of which nothing has changed needs no memory. */
static void keep_known(const struct attempt *attempt) {
  const struct whole_reads *wanted = attempt->wanted;
  const struct block_read *blocks = attempt->blocks;
  if (wanted->known == NULL) return;
  for (size_t i = 0; i < wanted->count; i++) {
    pserver_tensor *tensor = &wanted->tensors[i];
    bool is_spare = attempt->was_allocated[i] && is_all_unchanged(blocks);
    if (is_spare) pserver_tensor_release(tensor);
    else keep_blocks(blocks, tensor, wanted->known[i].data);
    blocks += attempt->parameters[i]->layout.blocks;
  }
}

static pserver_status read_found(struct call *call, struct attempt *attempt) {
  const struct whole_reads *wanted = attempt->wanted;
  pserver_status status = prepare_targets(attempt);
  if (status == PSERVER_OK && wanted->origins != NULL) {
    status = ps_origins_new(call->client->number, attempt->parameters, wanted->count,
                            wanted->options->encoding, &attempt->origins);
  }
  if (status == PSERVER_OK) status = read_blocks(call, attempt);
  if (status != PSERVER_OK) {
    for (size_t i = 0; i < wanted->count; i++) {
      if (attempt->was_allocated[i]) pserver_tensor_release(&wanted->tensors[i]);
    }
    return status;
  }
  keep_known(attempt);
  if (wanted->origins != NULL) {
    *wanted->origins = attempt->origins;
    attempt->origins = NULL;
  }
  return status;
}

static pserver_status read_once(struct call *call, const struct whole_reads *wanted,
                                bool *is_replaced) {
  struct attempt attempt = {.wanted = wanted};
  pserver_status status =
      allocate(&attempt)
          ? ps_find_parameters(call, wanted->names, wanted->count, true, attempt.parameters)
          : ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", wanted->count);
  if (status == PSERVER_OK) status = read_found(call, &attempt);
  release(&attempt);
  *is_replaced = attempt.is_replaced;
  return status;
}

pserver_status ps_read_whole(struct call *call, const struct whole_reads *reads) {
  bool is_replaced = true;
  pserver_status status = PSERVER_OK;
  while (is_replaced) status = read_once(call, reads, &is_replaced);
  return status;
}
