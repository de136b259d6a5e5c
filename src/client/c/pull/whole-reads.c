/* Reads whole parameters, all their blocks at once; keeps known values that have not changed. A parameter
 * that is initialized anew meanwhile is read again, the others are not. */
#include "pull/whole-reads.h"

#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "pull/origins.h"
#include "pull/pull.h"
#include "wire/dtypes.h"

/** The reads of a call. */
struct reads {
  struct ps_call *call;
  const struct ps_whole_reads *wanted;
  /** By name, as the following lists. */
  struct ps_parameter **parameters;
  bool *was_allocated;
  /** Whether the tensor is still to be read, and whether its parameter was initialized anew meanwhile. */
  bool *is_left;
  bool *is_replaced;
  /** NULL unless the call shall return origins. */
  pserver_origins *origins;
};

static pserver_status allocate(struct reads *reads) {
  size_t count = reads->wanted->count;
  reads->parameters = calloc(count, sizeof *reads->parameters);
  reads->was_allocated = calloc(count, sizeof *reads->was_allocated);
  reads->is_left = malloc(count * sizeof *reads->is_left);
  reads->is_replaced = calloc(count, sizeof *reads->is_replaced);
  if (reads->parameters == NULL || reads->was_allocated == NULL || reads->is_left == NULL ||
      reads->is_replaced == NULL) {
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", count);
  }
  for (size_t i = 0; i < count; i++) reads->is_left[i] = true;
  return PSERVER_OK;
}

static void release(struct reads *reads) {
  if (reads->parameters != NULL) ps_parameters_unref(reads->parameters, reads->wanted->count);
  free(reads->parameters);
  free(reads->was_allocated);
  free(reads->is_left);
  free(reads->is_replaced);
  pserver_origins_free(reads->origins);
}

static pserver_status prepare_target(const struct reads *reads, size_t i) {
  const struct ps_whole_reads *wanted = reads->wanted;
  const struct ps_parameter *parameter = reads->parameters[i];
  pserver_status status = ps_check_read_encoding(parameter, wanted->options->encoding);
  if (status != PSERVER_OK) return status;
  return ps_prepare_target(parameter, parameter->shape, parameter->rank, parameter->layout.elements,
                           &wanted->tensors[i], &reads->was_allocated[i]);
}

static pserver_status prepare_all(struct reads *reads) {
  const struct ps_whole_reads *wanted = reads->wanted;
  pserver_status status =
      ps_find_parameters(reads->call, wanted->names, wanted->count, true, reads->parameters);
  for (size_t i = 0; i < wanted->count && status == PSERVER_OK; i++) status = prepare_target(reads, i);
  if (status != PSERVER_OK || wanted->origins == NULL) return status;
  return ps_origins_new(reads->call->client->number, reads->parameters, wanted->count,
                        wanted->options->encoding, &reads->origins);
}

/** Finds a parameter again, and prepares its tensor, which may need other memory. */
static pserver_status prepare_again(struct reads *reads, size_t i) {
  const struct ps_whole_reads *wanted = reads->wanted;
  ps_parameters_unref(&reads->parameters[i], 1);
  reads->parameters[i] = NULL;
  if (reads->was_allocated[i]) pserver_tensor_release(&wanted->tensors[i]);
  reads->was_allocated[i] = false;
  pserver_status status =
      ps_find_parameters(reads->call, &wanted->names[i], 1, true, &reads->parameters[i]);
  if (status == PSERVER_OK) status = prepare_target(reads, i);
  if (status != PSERVER_OK || reads->origins == NULL) return status;
  return ps_set_origin(&reads->origins->list[i], reads->parameters[i], wanted->options->encoding);
}

/** Makes the reads of a parameter's blocks. */
static void plan_blocks(const struct reads *reads, size_t i, struct ps_block_read *blocks) {
  const struct ps_whole_reads *wanted = reads->wanted;
  struct ps_parameter *parameter = reads->parameters[i];
  pserver_origins *origins = reads->origins;
  const struct ps_block_state *known = NULL;
  uint64_t *version = wanted->options->versions == NULL ? NULL : &wanted->options->versions[i];
  if (version != NULL) *version = 0;
  if (wanted->known != NULL) {
    known = ps_known_states(&wanted->known[i], origins->client, parameter, wanted->options->encoding);
  }
  for (uint32_t index = 0; index < parameter->layout.blocks; index++) {
    blocks[index] = (struct ps_block_read){.parameter = parameter,
                                           .index = index,
                                           .encoding = wanted->options->encoding,
                                           .target = wanted->tensors[i].data,
                                           .version = version,
                                           .is_replaced = &reads->is_replaced[i]};
    if (known != NULL) blocks[index].known = known[index];
    if (origins != NULL) blocks[index].state = &origins->list[i].blocks[index];
  }
}

/** Copies the values of unchanged blocks from the known ones. */
static void keep_blocks(const struct ps_block_read *blocks, const pserver_tensor *tensor,
                        const uint8_t *known) {
  const struct ps_parameter *parameter = blocks[0].parameter;
  size_t bytes = ps_dtype_bytes(parameter->dtype);
  if (tensor->data == known) return;
  for (uint64_t i = 0; i < parameter->layout.blocks; i++) {
    if (!blocks[i].is_unchanged) continue;
    size_t start = i * parameter->layout.block_elements * bytes;
    memcpy((uint8_t *)tensor->data + start, known + start, ps_block_elements(parameter, i) * bytes);
  }
}

static bool is_all_unchanged(const struct ps_block_read *blocks) {
  for (uint64_t i = 0; i < blocks[0].parameter->layout.blocks; i++) {
    if (!blocks[i].is_unchanged) return false;
  }
  return true;
}

/** Completes a tensor with known values; releases allocated memory if no block has changed. */
static void keep_known(const struct reads *reads, size_t i, const struct ps_block_read *blocks) {
  const struct ps_whole_reads *wanted = reads->wanted;
  pserver_tensor *tensor = &wanted->tensors[i];
  if (wanted->known == NULL) return;
  bool is_spare = reads->was_allocated[i] && is_all_unchanged(blocks);
  if (is_spare) pserver_tensor_release(tensor);
  else keep_blocks(blocks, tensor, wanted->known[i].data);
}

/** Reads the tensors that are left; those whose parameters are replaced meanwhile are left again. */
static pserver_status read_blocks(struct reads *reads, struct ps_block_read *blocks, size_t total) {
  struct ps_block_read *next = blocks;
  size_t count = reads->wanted->count;
  for (size_t i = 0; i < count; i++) {
    if (!reads->is_left[i]) continue;
    plan_blocks(reads, i, next);
    next += reads->parameters[i]->layout.blocks;
  }
  pserver_status status = ps_read_blocks(reads->call, blocks, total);
  next = blocks;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    if (!reads->is_left[i]) continue;
    if (!reads->is_replaced[i]) keep_known(reads, i, next);
    reads->is_left[i] = reads->is_replaced[i];
    next += reads->parameters[i]->layout.blocks;
  }
  return status;
}

static pserver_status read_left(struct reads *reads) {
  size_t total = 0;
  for (size_t i = 0; i < reads->wanted->count; i++) {
    if (reads->is_left[i]) total += reads->parameters[i]->layout.blocks;
  }
  struct ps_block_read *blocks = calloc(total, sizeof *blocks);
  if (blocks == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", total);
  pserver_status status = read_blocks(reads, blocks, total);
  free(blocks);
  return status;
}

/** Prepares the tensors that are left again; returns whether there are any. */
static bool prepare_left(struct reads *reads, pserver_status *status) {
  bool is_any_left = false;
  for (size_t i = 0; i < reads->wanted->count && *status == PSERVER_OK; i++) {
    if (!reads->is_left[i]) continue;
    is_any_left = true;
    reads->is_replaced[i] = false;
    *status = prepare_again(reads, i);
  }
  return is_any_left;
}

static pserver_status read_all(struct reads *reads) {
  const struct ps_whole_reads *wanted = reads->wanted;
  pserver_status status = allocate(reads);
  if (status == PSERVER_OK) status = prepare_all(reads);
  bool is_any_left = true;
  while (status == PSERVER_OK && is_any_left) {
    status = read_left(reads);
    if (status == PSERVER_OK) is_any_left = prepare_left(reads, &status);
  }
  for (size_t i = 0; i < wanted->count && status != PSERVER_OK; i++) {
    bool is_own = reads->was_allocated != NULL && reads->was_allocated[i];
    if (is_own) pserver_tensor_release(&wanted->tensors[i]);
  }
  return status;
}

pserver_status ps_read_whole(struct ps_call *call, const struct ps_whole_reads *wanted) {
  struct reads reads = {.call = call, .wanted = wanted};
  pserver_status status = read_all(&reads);
  if (status == PSERVER_OK && wanted->origins != NULL) {
    *wanted->origins = reads.origins;
    reads.origins = NULL;
  }
  release(&reads);
  return status;
}
