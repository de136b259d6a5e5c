/* The fates of the updates of a call. */
#include "core/update-call.h"

#include "errors/errors.h"

bool ps_update_call_is_over(const struct ps_update_call *call) { return call->pending == 0; }

bool ps_update_call_has_failed(const struct ps_update_call *call) {
  return call->rejection != NULL || call->unknown > 0 || call->unsent > 0;
}

void ps_update_applied(struct ps_block_update *update) {
  update->fate = PS_FATE_APPLIED;
  update->call->applied += update->blocks;
  update->call->pending -= update->blocks;
}

void ps_update_settled(struct ps_block_update *update, const struct ps_outcome *outcome) {
  struct ps_update_call *call = update->call;
  struct ps_failure *failure = outcome->failure;
  enum ps_rejection reaction = PS_REJECTION_FAIL;
  if (failure != NULL) reaction = ps_reaction_to_rejection(failure->code);
  if (failure == NULL ||
      (reaction == PS_REJECTION_COUNT_PRESENT && call->mode.counts_present)) {
    ps_update_applied(update);
  } else if (reaction == PS_REJECTION_COUNT_LATE && call->mode.counts_late) {
    update->fate = PS_FATE_LATE;
    call->late += update->blocks;
    call->pending -= update->blocks;
  } else {
    ps_update_rejected(update, failure);
  }
}

void ps_update_rejected(struct ps_block_update *update, struct ps_failure *failure) {
  struct ps_update_call *call = update->call;
  update->fate = PS_FATE_REJECTED;
  call->pending -= update->blocks;
  if (call->rejection != NULL) return;
  call->rejected = update;
  ps_failure_set(&call->rejection, failure);
}

void ps_update_unknown(struct ps_block_update *update) {
  update->fate = PS_FATE_UNKNOWN;
  update->call->unknown += update->blocks;
  update->call->pending -= update->blocks;
}

void ps_update_unsent(struct ps_block_update *update, struct ps_failure *obstacle) {
  struct ps_update_call *call = update->call;
  update->fate = PS_FATE_UNSENT;
  call->unsent += update->blocks;
  call->pending -= update->blocks;
  ps_failure_set_first(&call->obstacle, obstacle);
}

void ps_update_call_ended(struct ps_update_call *call, struct ps_failure *end) {
  ps_failure_set_first(&call->end, end);
}
