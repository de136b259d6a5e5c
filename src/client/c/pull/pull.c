#include "pull/pull.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Calls that read whole parameters and parts of them. */

/* The versions that tensors were read from, for later reads of what has changed. */

static void release_origin(struct ps_origin *origin) {
  ps_parameter_unref(origin->parameter);
  if (origin->has_own_blocks) free(origin->blocks);
}

static void set_origin(struct ps_origin *origin, struct ps_parameter *parameter, pserver_encoding encoding,
                       struct ps_block_state *blocks) {
  *origin = (struct ps_origin){.parameter = parameter, .encoding = encoding, .blocks = blocks};
  ps_parameter_ref(parameter);
}

/** Replaces the parameter of an origin; its blocks have no state yet. INTERNAL. */
static pserver_status replace_origin(struct ps_origin *origin, struct ps_parameter *parameter) {
  size_t count = (size_t)parameter->layout.blocks;
  struct ps_block_state *blocks = calloc(count, sizeof *blocks);
  if (blocks == NULL) return ps_no_memory("the states of %zu blocks", count);
  release_origin(origin);
  set_origin(origin, parameter, origin->encoding, blocks);
  origin->has_own_blocks = true;
  return PSERVER_OK;
}

pserver_status ps_origins_new(uint64_t client, struct ps_parameter *const *parameters, size_t count,
                              pserver_encoding encoding, pserver_origins **origins) {
  pserver_origins *made = calloc(1, sizeof *made + count * sizeof made->list[0]);
  *origins = made;
  if (made == NULL) return ps_no_memory("%zu origins", count);
  size_t blocks = 0;
  for (size_t i = 0; i < count; i++) blocks += (size_t)parameters[i]->layout.blocks;
  made->states = calloc(blocks, sizeof *made->states);
  if (made->states == NULL) return ps_no_memory("the states of %zu blocks", blocks);
  made->client = client;
  made->count = count;
  struct ps_block_state *next = made->states;
  for (size_t i = 0; i < count; i++) {
    set_origin(&made->list[i], parameters[i], encoding, next);
    next += parameters[i]->layout.blocks;
  }
  return PSERVER_OK;
}

/**
 * Returns the states of the parameter's blocks in `known`; NULL if there are none, or of another epoch,
 * encoding or client.
 */
static const struct ps_block_state *known_states(const pserver_known *known, uint64_t client,
                                                 const struct ps_parameter *parameter,
                                                 pserver_encoding encoding) {
  const pserver_origins *origins = known->origins;
  if (known->data == NULL || origins == NULL || origins->client != client) return NULL;
  const struct ps_origin *origin = &origins->list[known->index];
  const struct ps_parameter *read = origin->parameter;
  bool is_same = read->epoch == parameter->epoch && origin->encoding == encoding &&
                 read->layout.blocks == parameter->layout.blocks &&
                 strcmp(read->name, parameter->name) == 0;
  return is_same ? origin->blocks : NULL;
}

void pserver_origins_free(pserver_origins *origins) {
  if (origins == NULL) return;
  for (size_t i = 0; i < origins->count; i++) release_origin(&origins->list[i]);
  free(origins->states);
  free(origins);
}

/** The arguments of a call that reads whole parameters. */
struct whole_reads {
  const char *const *names;
  pserver_tensor *tensors;
  size_t count;
  const pserver_read_options *options;
  /** One for each name; may be NULL. */
  const pserver_known *known;
  /** Receives the origins; may be NULL. */
  pserver_origins **origins;
};

/* Reads whole parameters, all their blocks at once; keeps known values that have not changed. A parameter
 * that is initialized again before all its blocks are read is read again; the others are not. */

/**
 * Prepares a tensor to receive values: allocates memory, and sets `*was_allocated`, if `data` is NULL.
 * BAD_DTYPE or BAD_LENGTH if memory of the caller does not fit; INTERNAL.
 */
static pserver_status prepare_tensor(const struct ps_parameter *parameter, const uint64_t *shape,
                                     int32_t rank, uint64_t elements, pserver_tensor *tensor,
                                     bool *was_allocated) {
  uint64_t bytes = elements * ps_dtype_bytes(parameter->dtype);
  *was_allocated = false;
  if (tensor->data != NULL && tensor->dtype != parameter->dtype) {
    const char *name = ps_dtype_name(tensor->dtype);
    const char *received = name == NULL ? "no element type" : name;
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected %s; received %s", parameter->name,
            ps_dtype_name(parameter->dtype), received);
    return ps_detail_mismatch(parameter->name, ps_dtype_name(parameter->dtype), received);
  }
  if (tensor->data != NULL && tensor->bytes != bytes) {
    return ps_fail_length(parameter->name, bytes, tensor->bytes);
  }
  if (tensor->data == NULL) {
    tensor->data = malloc(bytes == 0 ? 1 : bytes);
    if (tensor->data == NULL) {
      return ps_fail(PSERVER_ERR_INTERNAL, "\"%s\": no memory for %" PRIu64 " bytes", parameter->name,
                     bytes);
    }
    *was_allocated = true;
  }
  tensor->dtype = parameter->dtype;
  tensor->rank = rank;
  tensor->bytes = bytes;
  memcpy(tensor->shape, shape, (size_t)rank * sizeof shape[0]);
  return PSERVER_OK;
}

/** Progress of reading one tensor. */
struct tensor_state {
  bool was_allocated;
  bool is_read;
  /** Whether its parameter has been initialized again since, so that it must be read again. */
  bool is_replaced;
};

/** The reads of a call. */
struct reads {
  struct ps_call *call;
  const struct whole_reads *arguments;
  /** By name. */
  struct ps_parameter **parameters;
  struct tensor_state *states;
  /** NULL unless the call shall return origins. */
  pserver_origins *origins;
};

static pserver_status allocate(struct reads *reads) {
  size_t count = reads->arguments->count;
  reads->parameters = calloc(count, sizeof *reads->parameters);
  reads->states = calloc(count, sizeof *reads->states);
  return reads->parameters == NULL || reads->states == NULL ? ps_no_memory("%zu names", count)
                                                            : PSERVER_OK;
}

static void release_reads(struct reads *reads) {
  if (reads->parameters != NULL) ps_parameters_unref(reads->parameters, reads->arguments->count);
  free(reads->parameters);
  free(reads->states);
  pserver_origins_free(reads->origins);
}

static pserver_status prepare_target(const struct reads *reads, size_t i) {
  const struct whole_reads *arguments = reads->arguments;
  const struct ps_parameter *parameter = reads->parameters[i];
  pserver_status status = ps_check_read_encoding(parameter, arguments->options->encoding);
  if (status != PSERVER_OK) return status;
  return prepare_tensor(parameter, parameter->shape, parameter->rank, parameter->layout.elements,
                        &arguments->tensors[i], &reads->states[i].was_allocated);
}

static pserver_status prepare_all(struct reads *reads) {
  const struct whole_reads *arguments = reads->arguments;
  pserver_status status =
      ps_find_parameters(reads->call, arguments->names, arguments->count, true, reads->parameters);
  for (size_t i = 0; i < arguments->count && status == PSERVER_OK; i++) status = prepare_target(reads, i);
  if (status != PSERVER_OK || arguments->origins == NULL) return status;
  return ps_origins_new(reads->call->client->number, reads->parameters, arguments->count,
                        arguments->options->encoding, &reads->origins);
}

/** Finds a parameter again, and prepares its tensor, which may need other memory. */
static pserver_status prepare_again(struct reads *reads, size_t i) {
  const struct whole_reads *arguments = reads->arguments;
  ps_parameters_unref(&reads->parameters[i], 1);
  reads->parameters[i] = NULL;
  if (reads->states[i].was_allocated) pserver_tensor_release(&arguments->tensors[i]);
  reads->states[i].was_allocated = false;
  pserver_status status =
      ps_find_parameters(reads->call, &arguments->names[i], 1, true, &reads->parameters[i]);
  if (status == PSERVER_OK) status = prepare_target(reads, i);
  if (status != PSERVER_OK || reads->origins == NULL) return status;
  return replace_origin(&reads->origins->list[i], reads->parameters[i]);
}

/** Makes the reads of a parameter's blocks. */
static void plan_blocks(const struct reads *reads, size_t i, struct ps_block_read *blocks) {
  const struct whole_reads *arguments = reads->arguments;
  struct ps_parameter *parameter = reads->parameters[i];
  pserver_origins *origins = reads->origins;
  const struct ps_block_state *known = NULL;
  uint64_t *version = arguments->options->versions == NULL ? NULL : &arguments->options->versions[i];
  if (version != NULL) *version = 0;
  if (arguments->known != NULL) {
    known = known_states(&arguments->known[i], origins->client, parameter, arguments->options->encoding);
  }
  for (uint32_t index = 0; index < parameter->layout.blocks; index++) {
    blocks[index] = (struct ps_block_read){.parameter = parameter,
                                           .index = index,
                                           .encoding = arguments->options->encoding,
                                           .target = arguments->tensors[i].data,
                                           .version = version,
                                           .is_replaced = &reads->states[i].is_replaced};
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
  const struct whole_reads *arguments = reads->arguments;
  pserver_tensor *tensor = &arguments->tensors[i];
  if (arguments->known == NULL) return;
  bool is_spare = reads->states[i].was_allocated && is_all_unchanged(blocks);
  if (is_spare) pserver_tensor_release(tensor);
  else keep_blocks(blocks, tensor, arguments->known[i].data);
}

/**
 * Reads the tensors that are not read yet. Those whose parameters are replaced in the meantime stay unread.
 */
static pserver_status read_blocks(struct reads *reads, struct ps_block_read *blocks, size_t total) {
  struct ps_block_read *next = blocks;
  size_t count = reads->arguments->count;
  for (size_t i = 0; i < count; i++) {
    if (reads->states[i].is_read) continue;
    plan_blocks(reads, i, next);
    next += reads->parameters[i]->layout.blocks;
  }
  pserver_status status = ps_read_blocks(reads->call, blocks, total);
  next = blocks;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    if (reads->states[i].is_read) continue;
    if (!reads->states[i].is_replaced) keep_known(reads, i, next);
    reads->states[i].is_read = !reads->states[i].is_replaced;
    next += reads->parameters[i]->layout.blocks;
  }
  return status;
}

static pserver_status read_left_blocks(struct reads *reads) {
  size_t total = 0;
  for (size_t i = 0; i < reads->arguments->count; i++) {
    if (!reads->states[i].is_read) total += reads->parameters[i]->layout.blocks;
  }
  struct ps_block_read *blocks = malloc(total * sizeof *blocks);
  if (blocks == NULL) return ps_no_memory("%zu blocks", total);
  pserver_status status = read_blocks(reads, blocks, total);
  free(blocks);
  return status;
}

/** Prepares the tensors that are not read yet; returns whether there are any. */
static bool prepare_left(struct reads *reads, pserver_status *status) {
  bool is_any_left = false;
  for (size_t i = 0; i < reads->arguments->count && *status == PSERVER_OK; i++) {
    if (reads->states[i].is_read) continue;
    is_any_left = true;
    reads->states[i].is_replaced = false;
    *status = prepare_again(reads, i);
  }
  return is_any_left;
}

static pserver_status read_all(struct reads *reads) {
  const struct whole_reads *arguments = reads->arguments;
  pserver_status status = allocate(reads);
  if (status == PSERVER_OK) status = prepare_all(reads);
  bool is_any_left = true;
  while (status == PSERVER_OK && is_any_left) {
    status = read_left_blocks(reads);
    if (status == PSERVER_OK) is_any_left = prepare_left(reads, &status);
  }
  for (size_t i = 0; i < arguments->count && status != PSERVER_OK; i++) {
    bool is_own = reads->states != NULL && reads->states[i].was_allocated;
    if (is_own) pserver_tensor_release(&arguments->tensors[i]);
  }
  return status;
}

/** Reads parameters as pserver_get_known() does, within a call. */
static pserver_status read_whole(struct ps_call *call, const struct whole_reads *arguments) {
  struct reads reads = {.call = call, .arguments = arguments};
  pserver_status status = read_all(&reads);
  if (status == PSERVER_OK && arguments->origins != NULL) {
    *arguments->origins = reads.origins;
    reads.origins = NULL;
  }
  release_reads(&reads);
  return status;
}

/* Calls that read whole parameters. */

pserver_status ps_pull_parameters(struct ps_call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options) {
  struct whole_reads reads = {.names = names, .tensors = tensors, .count = count, .options = options};
  return read_whole(call, &reads);
}

void pserver_read_options_init(pserver_read_options *options) {
  if (options == NULL) return;
  *options = (pserver_read_options){.struct_size = sizeof *options};
}

static pserver_status check_options(const struct ps_call *call, const pserver_read_options *options) {
  return ps_check_options(call->what, sizeof *options, options->struct_size, "pserver_read_options_init",
                          options->encoding);
}

static pserver_status check_reads(const struct ps_call *call, const struct whole_reads *reads) {
  if (reads->count == 0) {
    return ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one name; received none", call->what);
  }
  if (reads->names == NULL || reads->tensors == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and tensors; received NULL", call->what);
  }
  return check_options(call, reads->options);
}

static pserver_status check_known(const struct ps_call *call, const struct whole_reads *reads) {
  for (size_t i = 0; reads->known != NULL && i < reads->count; i++) {
    const pserver_known *known = &reads->known[i];
    if (known->origins == NULL || known->index < known->origins->count) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: known: expected an index below %zu; received %zu", call->what,
            known->origins->count, known->index);
    return ps_detail_numbers(known->origins->count, known->index);
  }
  return PSERVER_OK;
}

static pserver_status get_with(const char *what, pserver_client *handle, const struct whole_reads *arguments,
                               int64_t timeout_ms) {
  struct ps_call call;
  struct whole_reads reads = *arguments;
  pserver_read_options options;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_read_options_init(&options);
  if (reads.options == NULL) reads.options = &options;
  status = check_reads(&call, &reads);
  if (status == PSERVER_OK) status = check_known(&call, &reads);
  if (status == PSERVER_OK) status = read_whole(&call, &reads);
  return ps_call_end(&call, status);
}

pserver_status pserver_get(pserver_client *client, const char *const *names, pserver_tensor *tensors,
                           size_t count, pserver_encoding encoding, int64_t timeout_ms) {
  pserver_read_options options = {.struct_size = sizeof options, .encoding = encoding};
  struct whole_reads reads = {.names = names, .tensors = tensors, .count = count, .options = &options};
  return get_with("pserver_get", client, &reads, timeout_ms);
}

pserver_status pserver_get_with(pserver_client *client, const char *const *names, pserver_tensor *tensors,
                                size_t count, const pserver_read_options *options, int64_t timeout_ms) {
  struct whole_reads reads = {.names = names, .tensors = tensors, .count = count, .options = options};
  return get_with("pserver_get_with", client, &reads, timeout_ms);
}

pserver_status pserver_get_known(pserver_client *client, const char *const *names, pserver_tensor *tensors,
                                 size_t count, const pserver_known *known, pserver_origins **origins,
                                 const pserver_read_options *options, int64_t timeout_ms) {
  struct whole_reads reads = {.names = names,
                              .tensors = tensors,
                              .count = count,
                              .options = options,
                              .known = known,
                              .origins = origins};
  if (origins == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_get_known: origins: expected a pointer; received NULL");
  }
  return get_with("pserver_get_known", client, &reads, timeout_ms);
}

void pserver_tensor_release(pserver_tensor *tensor) {
  if (tensor == NULL) return;
  free(tensor->data);
  tensor->data = NULL;
}

/** The arguments of a call that reads a part. */
struct part_read {
  const char *name;
  const pserver_indices *indices;
  size_t rank;
  pserver_tensor *part;
  const pserver_read_options *options;
  bool is_replaced;
};

static pserver_status read_plan(struct ps_call *call, struct ps_parameter *parameter,
                                const struct ps_part_plan *plan, struct part_read *read) {
  struct ps_block_read *reads = calloc(plan->count + 1, sizeof *reads);
  if (reads == NULL) return ps_no_memory("%zu blocks", plan->count);
  if (read->options->versions != NULL) *read->options->versions = 0;
  for (size_t i = 0; i < plan->count; i++) {
    reads[i] = (struct ps_block_read){.parameter = parameter,
                                      .index = plan->blocks[i].index,
                                      .encoding = read->options->encoding,
                                      .target = read->part->data,
                                      .version = read->options->versions,
                                      .part = &plan->blocks[i],
                                      .is_replaced = &read->is_replaced};
  }
  pserver_status status = ps_read_blocks(call, reads, plan->count);
  free(reads);
  return status;
}

static pserver_status pull_part(struct ps_call *call, struct part_read *read) {
  struct ps_parameter *found = NULL;
  struct ps_part_plan plan = {0};
  bool was_allocated = false;
  read->is_replaced = false;
  pserver_status status = ps_find_parameters(call, &read->name, 1, true, &found);
  if (status == PSERVER_OK) status = ps_check_read_encoding(found, read->options->encoding);
  if (status == PSERVER_OK) status = ps_plan_part(found, read->indices, read->rank, &plan);
  if (status == PSERVER_OK) {
    status =
        prepare_tensor(found, plan.shape, (int32_t)read->rank, plan.elements, read->part, &was_allocated);
  }
  if (status == PSERVER_OK) status = read_plan(call, found, &plan, read);
  bool is_settled = status == PSERVER_OK && !read->is_replaced;
  if (!is_settled && was_allocated) pserver_tensor_release(read->part);
  ps_part_plan_release(&plan);
  ps_parameters_unref(&found, 1);
  return status;
}

static pserver_status pull_part_with(const char *what, pserver_client *handle,
                                     const struct part_read *arguments, int64_t timeout_ms) {
  struct ps_call call;
  struct part_read read = *arguments;
  pserver_read_options options;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_read_options_init(&options);
  if (read.options == NULL) read.options = &options;
  if (read.part == NULL) status = ps_fail(PSERVER_ERR_BAD_VALUE, "part: expected a tensor; received NULL");
  if (status == PSERVER_OK) status = check_options(&call, read.options);
  read.is_replaced = status == PSERVER_OK;
  while (status == PSERVER_OK && read.is_replaced) status = pull_part(&call, &read);
  return ps_call_end(&call, status);
}

pserver_status pserver_pull_part(pserver_client *client, const char *name, const pserver_indices *indices,
                                 size_t rank, pserver_tensor *part, int64_t timeout_ms) {
  struct part_read read = {name, indices, rank, part, NULL, false};
  return pull_part_with("pserver_pull_part", client, &read, timeout_ms);
}

pserver_status pserver_pull_part_with(pserver_client *client, const char *name,
                                      const pserver_indices *indices, size_t rank, pserver_tensor *part,
                                      const pserver_read_options *options, int64_t timeout_ms) {
  struct part_read read = {name, indices, rank, part, options, false};
  return pull_part_with("pserver_pull_part_with", client, &read, timeout_ms);
}
