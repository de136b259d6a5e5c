/* Block updates, and the calls that they belong to. */
#include "core/block-update.h"

#include <stdlib.h>

/** The first delay before a record that the broker did not store is published again. */
#define RETRY_FIRST_MS 50

static struct ps_block_update new_block_update(struct ps_update_call *call, size_t index,
                                               const struct ps_update_size *size) {
  return (struct ps_block_update){
      .call = call,
      .index = index,
      .shard = size->shard,
      .blocks = size->blocks,
      .data_bytes = size->data_bytes,
      .names_version = size->names_version,
      .fate = PS_FATE_PENDING,
      .slot = -1,
      .retry_at_ms = PS_NEVER_MS,
      .retry_delay_ms = RETRY_FIRST_MS,
      .ask_at_ms = PS_NEVER_MS,
  };
}

struct ps_update_call *ps_update_call_new(uint64_t id, struct ps_call_mode mode,
                                          const struct ps_update_size *sizes, size_t count) {
  if (count > (SIZE_MAX - sizeof(struct ps_update_call)) / sizeof(struct ps_block_update)) {
    return NULL;
  }
  struct ps_update_call *call = malloc(sizeof *call + count * sizeof call->updates[0]);
  if (call == NULL) return NULL;
  *call = (struct ps_update_call){
      .id = id,
      .mode = mode,
      .references = 1,
      .update_count = count,
  };
  for (size_t i = 0; i < count; i++) {
    call->updates[i] = new_block_update(call, i, &sizes[i]);
    call->pending += sizes[i].blocks;
  }
  return call;
}

void ps_update_call_drop(struct ps_update_call *call, size_t references) {
  call->references -= references;
  if (call->references > 0) return;
  for (size_t i = 0; i < call->update_count; i++) ps_failure_drop(call->updates[i].obstacle);
  ps_failure_drop(call->rejection);
  ps_failure_drop(call->obstacle);
  ps_failure_drop(call->end);
  free(call);
}

void ps_block_update_reset(struct ps_block_update *update) {
  update->n = 0;
  update->is_rejoined = false;
  update->sends = 0;
  update->refusals = 0;
  update->retry_at_ms = PS_NEVER_MS;
  update->retry_delay_ms = RETRY_FIRST_MS;
  ps_failure_set(&update->obstacle, NULL);
  update->stored = (struct ps_position){0};
  update->ask_at_ms = PS_NEVER_MS;
}

bool ps_block_update_is_stored_nowhere(const struct ps_block_update *update) {
  return update->stored.generation == 0 && update->sends == update->refusals;
}
