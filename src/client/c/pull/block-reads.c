#include "pull/pull.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Reads blocks, whatever becomes of their requests. */

/* Takes the values of one block from an answer; copies them once, from the message to the tensor. */

uint64_t ps_read_elements(const struct ps_block_read *read) {
  return read->part == NULL ? ps_block_elements(read->parameter, read->index)
                            : ps_part_elements(read->part);
}

size_t ps_read_bytes(const struct ps_block_read *read) {
  return ps_encoded_bytes(read->parameter->dtype, read->encoding, ps_read_elements(read));
}

bool ps_read_is_wanted(const struct ps_block_read *read) { return !read->is_done && !*read->is_replaced; }

bool ps_read_is_known(const struct ps_block_read *read) { return read->known.version > 0; }

static pserver_status bad_codes(const struct ps_block_read *read) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE, "\"%s\" block %u: received scales or codes that %s does not have",
          read->parameter->name, (unsigned)read->index, ps_encoding_name(read->encoding));
  ps_detail_text("parameter", read->parameter->name);
  return ps_detail_whole("block", read->index);
}

/** Copies the elements of a part to the tensor; decodes them first if they are encoded. */
static pserver_status scatter_values(const struct ps_block_read *read, const uint8_t *data,
                                     uint64_t elements) {
  size_t bytes = ps_dtype_bytes(read->parameter->dtype);
  if (read->encoding == PSERVER_AS_IS) {
    ps_scatter_part(read->part, bytes, data, read->target);
    return PSERVER_OK;
  }
  uint8_t *decoded = malloc((size_t)elements * bytes);
  if (decoded == NULL) return ps_no_memory("%" PRIu64 " elements", elements);
  bool is_known = ps_decode_elements(read->encoding, data, elements, decoded);
  if (is_known) ps_scatter_part(read->part, bytes, decoded, read->target);
  free(decoded);
  return is_known ? PSERVER_OK : bad_codes(read);
}

static pserver_status copy_values(const struct ps_block_read *read, const uint8_t *data, uint64_t elements) {
  size_t bytes = ps_dtype_bytes(read->parameter->dtype);
  uint8_t *target = read->target + read->index * read->parameter->layout.block_elements * bytes;
  if (read->encoding != PSERVER_AS_IS) {
    return ps_decode_elements(read->encoding, data, elements, target) ? PSERVER_OK : bad_codes(read);
  }
  memcpy(target, data, elements * bytes);
  return PSERVER_OK;
}

static pserver_status write_values(const struct ps_block_read *read, const uint8_t *data) {
  uint64_t elements = ps_read_elements(read);
  return read->part != NULL ? scatter_values(read, data, elements) : copy_values(read, data, elements);
}

pserver_status ps_read_take(struct ps_block_read *read, const uint8_t *data, struct ps_block_state state) {
  struct ps_parameter *parameter = read->parameter;
  if (data != NULL) {
    pserver_status status = write_values(read, data);
    if (status != PSERVER_OK) return status;
  }
  read->is_done = true;
  read->is_unchanged = data == NULL;
  if (read->state != NULL) *read->state = state;
  if (read->version != NULL && state.version > *read->version) *read->version = state.version;
  __atomic_store_n(&parameter->seen[read->index], state.version, __ATOMIC_RELAXED);
  return PSERVER_OK;
}

/* Reads blocks. If a request fails because its parameters may have been replaced, they are looked up again,
 * and new requests are planned for the blocks that are not read yet. */

/** The block reads of one call. */
struct reading {
  struct ps_call *call;
  struct ps_block_read *reads;
  size_t count;
  /** How long to wait before blocks are asked for again although nothing new is known of their parameters. */
  int64_t pause_ms;
};

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

/**
 * Notes which tensors of a request are of parameters that have been initialized again: `fresh` are those of
 * list_stale(), looked up again. Returns whether there are any.
 */
static bool note_replaced(const struct ps_read_request *request, struct ps_parameter *const *stale,
                          struct ps_parameter *const *fresh) {
  size_t place = 0;
  bool is_any = false;
  for (size_t i = 0; i < request->count; i++) {
    const struct ps_block_read *read = request->blocks[i];
    if (read->is_done) continue;
    if (stale[place] != read->parameter) place++;
    if (fresh[place]->epoch == read->parameter->epoch) continue;
    *read->is_replaced = true;
    is_any = true;
  }
  return is_any;
}

/** Waits, longer each time: a shard that has lost blocks says so at once until hosts have noticed it, too. */
static pserver_status pause_reading(struct reading *reading) {
  int64_t delay_ms = ps_varied_ms(reading->pause_ms);
  reading->pause_ms = ps_doubled_ms(reading->pause_ms, PS_PAUSE_MS_MAX);
  return ps_call_sleep(reading->call, delay_ms);
}

static pserver_status look_again(struct reading *reading, const struct ps_read_request *request) {
  struct ps_call *call = reading->call;
  struct ps_parameter **stale = calloc(request->count, sizeof *stale);
  struct ps_parameter **fresh = calloc(request->count, sizeof *fresh);
  const char **names = calloc(request->count, sizeof *names);
  pserver_status status = PSERVER_OK;
  if (stale == NULL || fresh == NULL || names == NULL) {
    status = ps_no_memory("%zu names", request->count);
  } else {
    size_t count = list_stale(request, stale, names);
    ps_forget_parameters(&call->client->parameters, stale, count);
    status = ps_find_parameters(call, names, count, true, fresh);
    bool is_known = status == PSERVER_OK && !note_replaced(request, stale, fresh);
    if (is_known) status = pause_reading(reading);
    ps_parameters_unref(fresh, count);
  }
  free(stale);
  free(fresh);
  free(names);
  return status;
}

/** Returns the request that failed because its parameters may have been replaced; NULL if none did. */
static const struct ps_read_request *find_stale(const struct ps_read_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    if (plan->requests[i].is_stale) return &plan->requests[i];
  }
  return NULL;
}

static pserver_status ask_all(struct ps_call *call, const struct ps_read_plan *plan) {
  struct ps_client *client = call->client;
  struct ps_ask *asks = calloc(plan->count, sizeof *asks);
  if (asks == NULL) return ps_no_memory("%zu requests", plan->count);
  for (size_t i = 0; i < plan->count; i++) {
    plan->requests[i].client = client;
    ps_ask_for_read(&plan->requests[i], &asks[i]);
  }
  pserver_status status = ps_run_requests(call, &client->requests, asks, plan->count);
  free(asks);
  return status;
}

/** Requests the blocks that are not read yet, once. OK if all are read, or shall be requested again. */
static pserver_status read_left(struct reading *reading) {
  struct ps_read_plan plan;
  size_t message_bytes_max = ps_payload_bytes_max(&reading->call->client->connection);
  pserver_status status = ps_plan_reads(reading->reads, reading->count, message_bytes_max, &plan);
  if (status == PSERVER_OK) {
    status = ask_all(reading->call, &plan);
    const struct ps_read_request *stale = status == PSERVER_OK ? NULL : find_stale(&plan);
    if (stale != NULL) status = look_again(reading, stale);
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
  struct reading reading = {.call = call, .reads = reads, .count = count, .pause_ms = PS_PAUSE_MS};
  pserver_status status = PSERVER_OK;
  while (status == PSERVER_OK && is_any_left(&reading)) status = read_left(&reading);
  return status;
}
