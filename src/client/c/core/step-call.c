/* Calls of the step machine. */
#include "core/step-call.h"

#include <stdlib.h>

/** Adds a shard unless the call has it. */
static void add_shard(struct ps_step_call *call, unsigned shard) {
  for (size_t i = 0; i < call->shard_count; i++) {
    if (call->shards[i] == shard) return;
  }
  call->shards[call->shard_count++] = shard;
}

struct ps_step_call *ps_step_call_new(uint64_t id, enum ps_step_call_kind kind,
                                      const unsigned *shards, size_t count, bool ends_step) {
  struct ps_step_call *call = malloc(sizeof *call + count * sizeof call->shards[0]);
  if (call == NULL) return NULL;
  *call = (struct ps_step_call){
      .id = id, .kind = kind, .ends_step = ends_step, .phase = PS_STEP_QUEUED};
  for (size_t i = 0; i < count; i++) add_shard(call, shards[i]);
  return call;
}

void ps_step_call_destroy(struct ps_step_call *call) {
  ps_failure_drop(call->failure);
  free(call);
}
