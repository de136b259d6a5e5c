/* Counts the references of the outbox to calls. The TypeScript client needs none of this. */
#include "core/call-references.h"

void ps_call_references_take(struct ps_block_update *update) {
  update->is_held = true;
  update->call->references++;
}

void ps_call_references_note_unneeded(struct ps_call_references *references,
                                      struct ps_block_update *update) {
  struct ps_update_call *call = update->call;
  if (!update->is_held || update->is_open || update->slot >= 0) return;
  update->is_held = false;
  call->releases++;
  if (call->releases > 1) return;
  call->next_released = references->released;
  references->released = call;
}

void ps_call_references_release(struct ps_call_references *references) {
  while (references->released != NULL) {
    struct ps_update_call *call = references->released;
    size_t releases = call->releases;
    references->released = call->next_released;
    call->releases = 0;
    ps_update_call_drop(call, releases);
  }
}
