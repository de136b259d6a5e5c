/* The versions that tensors were read from, for later reads of what has changed. */
#include "pull/origins.h"

#include <stdlib.h>
#include <string.h>

static void release(struct ps_origin *origin) {
  ps_parameter_unref(origin->parameter);
  free(origin->blocks);
}

pserver_status ps_set_origin(struct ps_origin *origin, struct ps_parameter *parameter,
                             pserver_encoding encoding) {
  size_t blocks = (size_t)parameter->layout.blocks;
  release(origin);
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

const struct ps_block_state *ps_known_states(const pserver_known *known, uint64_t client,
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
  for (size_t i = 0; origins != NULL && i < origins->count; i++) release(&origins->list[i]);
  free(origins);
}
