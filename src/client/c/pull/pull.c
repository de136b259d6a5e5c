#include "calls/calls.h"
#include "calls/client.h"
#include "errors/errors.h"
#include "pull/pull.h"
#include "push/push.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The versions that tensors were read from, for later reads of what has changed. */

static void release_origin(struct ps_origin *origin) {
  ps_parameter_unref(origin->parameter);
  free(origin->blocks);
}

/** Replaces the parameter of an origin; its blocks have no state yet. INTERNAL. */
static pserver_status ps_set_origin(struct ps_origin *origin, struct ps_parameter *parameter,
                                    pserver_encoding encoding) {
  size_t blocks = (size_t)parameter->layout.blocks;
  release_origin(origin);
  *origin = (struct ps_origin){.encoding = encoding, .blocks = calloc(blocks, sizeof *origin->blocks)};
  if (origin->blocks == NULL) {
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for the states of %zu blocks", blocks);
  }
  origin->parameter = parameter;
  ps_parameter_ref(parameter);
  return PSERVER_OK;
}

pserver_status ps_origins_new(uint64_t client, struct ps_parameter *const *parameters, size_t count,
                              pserver_encoding encoding, pserver_origins **origins) {
  pserver_origins *made = calloc(1, sizeof *made + count * sizeof made->list[0]);
  *origins = made;
  if (made == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu origins", count);
  made->client = client;
  made->count = count;
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = ps_set_origin(&made->list[i], parameters[i], encoding);
  }
  return status;
}

/**
 * Returns the states of the parameter's blocks in `known`; NULL if there are none, or of another epoch,
 * encoding or client.
 */
static const struct ps_block_state *ps_known_states(const pserver_known *known, uint64_t client,
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
  for (size_t i = 0; origins != NULL && i < origins->count; i++) release_origin(&origins->list[i]);
  free(origins);
}

/* Reads whole parameters, all their blocks at once; keeps known values that have not changed. A parameter
 * that is initialized anew meanwhile is read again, the others are not. */

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

static void release_reads(struct reads *reads) {
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

static pserver_status read_left_blocks(struct reads *reads) {
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
    status = read_left_blocks(reads);
    if (status == PSERVER_OK) is_any_left = prepare_left(reads, &status);
  }
  for (size_t i = 0; i < wanted->count && status != PSERVER_OK; i++) {
    bool is_own = reads->was_allocated != NULL && reads->was_allocated[i];
    if (is_own) pserver_tensor_release(&wanted->tensors[i]);
  }
  return status;
}

/** Reads parameters as pserver_get_known() does, within a call. */
static pserver_status ps_read_whole(struct ps_call *call, const struct ps_whole_reads *wanted) {
  struct reads reads = {.call = call, .wanted = wanted};
  pserver_status status = read_all(&reads);
  if (status == PSERVER_OK && wanted->origins != NULL) {
    *wanted->origins = reads.origins;
    reads.origins = NULL;
  }
  release_reads(&reads);
  return status;
}

/* Reads blocks. After an error that can be overcome, new requests are planned for the blocks that are not
 * read yet. */

/** The reads of a call, and how the blocks of each shard are requested now. */
struct reading {
  struct ps_call *call;
  struct ps_block_read *reads;
  size_t count;
  struct ps_read_plan_options options;
  /** By shard: whether its owner has answered a single read although nobody listens to batched reads. */
  bool has_owner[PS_SHARDS_MAX];
};

static void set_ways(struct reading *reading, enum ps_read_way way) {
  for (int shard = 0; shard < PS_SHARDS_MAX; shard++) reading->options.way[shard] = way;
}

/** Reads blocks one by one from now on, because batched reads do not work for this client. */
static void read_singly(struct reading *reading) {
  __atomic_store_n(&reading->call->client->reads_singly, true, __ATOMIC_RELAXED);
  set_ways(reading, PS_READ_SINGLY);
}

/** Lists the parameters of a request's blocks that are not read, each once: its blocks are consecutive. */
static size_t list_stale(const struct ps_read_request *request, struct ps_parameter **stale,
                         const char **names) {
  size_t count = 0;
  for (size_t i = 0; i < request->count; i++) {
    struct ps_parameter *parameter = request->blocks[i]->parameter;
    if (request->blocks[i]->is_done || (count > 0 && stale[count - 1] == parameter)) continue;
    stale[count] = parameter;
    names[count++] = parameter->name;
  }
  return count;
}

/** Marks all reads of a parameter as replaced. */
static void note_replaced(struct reading *reading, const struct ps_parameter *parameter) {
  for (size_t i = 0; i < reading->count; i++) {
    if (reading->reads[i].parameter == parameter) *reading->reads[i].is_replaced = true;
  }
}

/** Looks parameters up again, and notes those that were initialized anew. */
static pserver_status find_again(struct reading *reading, struct ps_parameter *const *stale,
                                 const char *const *names, size_t count, struct ps_parameter **fresh) {
  struct ps_call *call = reading->call;
  ps_forget_parameters(&call->client->parameters, stale, count);
  pserver_status status = ps_find_parameters(call, names, count, true, fresh);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    if (fresh[i]->epoch != stale[i]->epoch) note_replaced(reading, stale[i]);
  }
  return status;
}

static pserver_status look_again(struct reading *reading, const struct ps_read_request *request) {
  struct ps_parameter **stale = calloc(request->count, sizeof *stale);
  struct ps_parameter **fresh = calloc(request->count, sizeof *fresh);
  const char **names = calloc(request->count, sizeof *names);
  pserver_status status = PSERVER_OK;
  if (stale == NULL || fresh == NULL || names == NULL) {
    status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", request->count);
  } else {
    size_t count = list_stale(request, stale, names);
    status = find_again(reading, stale, names, count, fresh);
    ps_parameters_unref(fresh, count);
  }
  free(stale);
  free(fresh);
  free(names);
  return status;
}

/** Reacts to the error of a request; OK if the blocks that are left shall be requested again. */
static pserver_status react(struct reading *reading, const struct ps_read_request *request) {
  if (request->problem == PS_READ_IS_STALE) return look_again(reading, request);
  /* If the owner answers single reads only, the broker's permissions do not allow it batched ones. */
  bool is_for_good = request->problem == PS_READ_IS_DENIED || reading->has_owner[request->shard];
  if (is_for_good) read_singly(reading);
  else reading->options.way[request->shard] = PS_READ_FIRST;
  return PSERVER_OK;
}

/** Returns the request whose error has ended all others; NULL if it was something else. */
static const struct ps_read_request *find_problem(const struct ps_read_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    if (plan->requests[i].problem != PS_READ_GOES_ON) return &plan->requests[i];
  }
  return NULL;
}

static pserver_status ask_all(struct ps_call *call, const struct ps_read_plan *plan) {
  struct ps_client *client = call->client;
  struct ps_ask *asks = calloc(plan->count, sizeof *asks);
  if (asks == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu requests", plan->count);
  for (size_t i = 0; i < plan->count; i++) {
    plan->requests[i].client = client;
    ps_ask_for_read(&plan->requests[i], &asks[i]);
  }
  pserver_status status = ps_run_requests(call, &client->requests, asks, plan->count);
  free(asks);
  return status;
}

/** Notes which owners have answered a single read while nobody listened to batched ones. */
static void note_owners(struct reading *reading, const struct ps_read_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    const struct ps_read_request *request = &plan->requests[i];
    bool is_first = reading->options.way[request->shard] == PS_READ_FIRST;
    if (!is_first || !request->blocks[0]->is_done) continue;
    reading->has_owner[request->shard] = true;
    reading->options.way[request->shard] = PS_READ_TOGETHER;
  }
}

/** Requests the blocks that are left, once. OK if all are read, or shall be requested again. */
static pserver_status read_left(struct reading *reading) {
  struct ps_read_plan plan;
  pserver_status status = ps_plan_reads(reading->reads, reading->count, &reading->options, &plan);
  if (status == PSERVER_OK) {
    status = ask_all(reading->call, &plan);
    note_owners(reading, &plan);
    const struct ps_read_request *problem = status == PSERVER_OK ? NULL : find_problem(&plan);
    if (problem != NULL) status = react(reading, problem);
  }
  ps_read_plan_release(&plan);
  return status;
}

static bool is_any_left(const struct reading *reading) {
  for (size_t i = 0; i < reading->count; i++) {
    if (ps_read_is_wanted(&reading->reads[i])) return true;
  }
  return false;
}

pserver_status ps_read_blocks(struct ps_call *call, struct ps_block_read *reads, size_t count) {
  struct ps_client *client = call->client;
  bool is_singly = __atomic_load_n(&client->reads_singly, __ATOMIC_RELAXED);
  struct reading reading = {
      .call = call,
      .reads = reads,
      .count = count,
      .options = {.message_bytes_max = ps_last_payload_bytes_max(&client->connection)}};
  set_ways(&reading, is_singly ? PS_READ_SINGLY : PS_READ_TOGETHER);
  pserver_status status = PSERVER_OK;
  while (status == PSERVER_OK && is_any_left(&reading)) status = read_left(&reading);
  return status;
}

/* Calls that read whole parameters. */

pserver_status ps_prepare_target(const struct ps_parameter *parameter, const uint64_t *shape, int32_t rank,
                                 uint64_t elements, pserver_tensor *tensor, bool *was_allocated) {
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

pserver_status ps_check_read_encoding(const struct ps_parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS || parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encodings are for float32; it is %s", parameter->name,
          ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

pserver_status ps_pull_parameters(struct ps_call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options) {
  struct ps_whole_reads reads = {
      .names = names, .tensors = tensors, .count = count, .options = options};
  return ps_read_whole(call, &reads);
}

void pserver_read_options_init(pserver_read_options *options) {
  if (options == NULL) return;
  *options = (pserver_read_options){.struct_size = sizeof *options};
}

pserver_status ps_check_read_options(const struct ps_call *call, const pserver_read_options *options) {
  if (options->struct_size != sizeof *options) {
    ps_fail(
        PSERVER_ERR_BAD_VALUE,
        "%s: struct_size: expected %zu; received %zu: fill the options with pserver_read_options_init",
        call->what, sizeof *options, options->struct_size);
    return ps_detail_numbers(sizeof *options, options->struct_size);
  }
  if (options->encoding == PSERVER_AS_IS || ps_encoding_name(options->encoding) != NULL) {
    return PSERVER_OK;
  }
  return ps_bad_encoding(call->what, options->encoding);
}

static pserver_status check_reads(const struct ps_call *call, const struct ps_whole_reads *reads) {
  if (reads->count == 0) {
    return ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one name; received none", call->what);
  }
  if (reads->names == NULL || reads->tensors == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and tensors; received NULL", call->what);
  }
  return ps_check_read_options(call, reads->options);
}

static pserver_status check_known(const struct ps_call *call, const struct ps_whole_reads *reads) {
  for (size_t i = 0; reads->known != NULL && i < reads->count; i++) {
    const pserver_known *known = &reads->known[i];
    if (known->origins == NULL || known->index < known->origins->count) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: known: expected an index below %zu; received %zu", call->what,
            known->origins->count, known->index);
    return ps_detail_numbers(known->origins->count, known->index);
  }
  return PSERVER_OK;
}

static pserver_status get_with(const char *what, pserver_client *handle,
                               const struct ps_whole_reads *wanted, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_whole_reads reads = *wanted;
  pserver_read_options options;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_read_options_init(&options);
  if (reads.options == NULL) reads.options = &options;
  status = check_reads(&call, &reads);
  if (status == PSERVER_OK) status = check_known(&call, &reads);
  if (status == PSERVER_OK) status = ps_read_whole(&call, &reads);
  return ps_call_end(&call, status);
}

pserver_status pserver_get(pserver_client *client, const char *const *names, pserver_tensor *tensors,
                           size_t count, pserver_encoding encoding, int64_t timeout_ms) {
  pserver_read_options options = {.struct_size = sizeof options, .encoding = encoding};
  struct ps_whole_reads reads = {
      .names = names, .tensors = tensors, .count = count, .options = &options};
  return get_with("pserver_get", client, &reads, timeout_ms);
}

pserver_status pserver_get_with(pserver_client *client, const char *const *names,
                                pserver_tensor *tensors, size_t count,
                                const pserver_read_options *options, int64_t timeout_ms) {
  struct ps_whole_reads reads = {
      .names = names, .tensors = tensors, .count = count, .options = options};
  return get_with("pserver_get_with", client, &reads, timeout_ms);
}

pserver_status pserver_get_known(pserver_client *client, const char *const *names,
                                 pserver_tensor *tensors, size_t count, const pserver_known *known,
                                 pserver_origins **origins, const pserver_read_options *options,
                                 int64_t timeout_ms) {
  struct ps_whole_reads reads = {.names = names,
                                 .tensors = tensors,
                                 .count = count,
                                 .options = options,
                                 .known = known,
                                 .origins = origins};
  if (origins == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_get_known: origins: expected a pointer; received NULL");
  }
  return get_with("pserver_get_known", client, &reads, timeout_ms);
}

void pserver_tensor_release(pserver_tensor *tensor) {
  if (tensor == NULL) return;
  free(tensor->data);
  tensor->data = NULL;
}
