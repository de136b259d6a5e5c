/* Takes the values of one block from an answer; copies them once, from the message to the tensor. */
#include "pull/block-read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parts/part-plan.h"
#include "wire/dtypes.h"
#include "wire/encodings.h"

unsigned ps_read_shard(const struct ps_block_read *read) {
  const struct ps_layout *layout = &read->parameter->layout;
  return (unsigned)((layout->first_shard + read->index) % layout->shards);
}

uint64_t ps_read_elements(const struct ps_block_read *read) {
  return read->part == NULL ? ps_block_elements(read->parameter, read->index)
                            : ps_part_elements(read->part);
}

size_t ps_read_bytes(const struct ps_block_read *read) {
  return ps_read_elements(read) * ps_encoded_bytes(read->parameter->dtype, read->encoding);
}

bool ps_read_is_wanted(const struct ps_block_read *read) { return !read->is_done && !*read->is_replaced; }

bool ps_read_is_known(const struct ps_block_read *read) { return read->known.version > 0; }

/** Copies the elements of a part to the tensor; decodes them first if they are encoded. */
static pserver_status scatter_values(const struct ps_block_read *read, const uint8_t *data,
                                     uint64_t elements) {
  size_t bytes = ps_dtype_bytes(read->parameter->dtype);
  if (read->encoding == PSERVER_AS_IS) {
    ps_scatter_part(read->part, bytes, data, read->target);
    return PSERVER_OK;
  }
  uint8_t *decoded = malloc((size_t)elements * bytes);
  if (decoded == NULL)
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %" PRIu64 " elements", elements);
  ps_decode_elements(read->encoding, data, (size_t)elements, decoded);
  ps_scatter_part(read->part, bytes, decoded, read->target);
  free(decoded);
  return PSERVER_OK;
}

static void copy_values(const struct ps_block_read *read, const uint8_t *data, uint64_t elements) {
  size_t bytes = ps_dtype_bytes(read->parameter->dtype);
  uint8_t *target = read->target + read->index * read->parameter->layout.block_elements * bytes;
  if (read->encoding == PSERVER_AS_IS) memcpy(target, data, elements * bytes);
  else ps_decode_elements(read->encoding, data, elements, target);
}

static pserver_status write_values(const struct ps_block_read *read, const uint8_t *data) {
  uint64_t elements = ps_read_elements(read);
  if (read->part != NULL) return scatter_values(read, data, elements);
  copy_values(read, data, elements);
  return PSERVER_OK;
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
