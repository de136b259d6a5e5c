/* What all requests for blocks have in common: position, step, and reactions to errors. */
#include "pull/read-requests.h"

#include "calls/client.h"

/** Minimum bytes of a request in the window, so that requests for tiny blocks are bounded, too. */
#define REQUEST_BYTES_MIN 16384

uint64_t ps_draft_read_condition(struct ps_ask *ask, struct ps_draft *draft) {
  struct ps_read_request *request = ask->context;
  struct ps_client *client = request->client;
  struct ps_position position = ps_positions_get(&client->positions, request->shard);
  uint64_t step = ps_steps_core_read_step(&client->steps.core);
  if (step < request->step) request->step = step;
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "waitMs", ps_ask_group_wait_ms(ask->group));
  if (step > 0) ps_draft_whole(draft, "step", step);
  return position.generation;
}

void ps_note_read_answer(struct ps_read_request *request, struct ps_position position) {
  struct ps_client *client = request->client;
  struct ps_steps_core *steps = &client->steps.core;
  ps_positions_note(&client->positions, request->shard, position);
  /* After a fallback, when reads wait for no step, closed steps may be open again. */
  if (ps_steps_core_read_step(steps) > 0) {
    ps_steps_core_note_closed(steps, request->shard, request->step);
  }
}

static pserver_status refused(struct ps_ask *ask, pserver_status status, const struct ps_message *message) {
  struct ps_read_request *request = ask->context;
  enum ps_reaction reaction = ps_reaction_to(status);
  if (reaction == PS_REACTION_REPLACED && message != NULL) {
    ps_positions_note_replaced(&request->client->positions, request->shard,
                               ps_expected_position(message).generation);
    return PSERVER_OK;
  }
  /* The next request waits for no step. */
  if (reaction == PS_REACTION_ENTER_ANEW) ps_steps_core_lost_place(&request->client->steps.core);
  bool is_unowned = request->is_batch && reaction == PS_REACTION_RETRY;
  if (is_unowned) request->problem = PS_READ_HAS_NO_OWNER;
  else if (request->is_batch && status == PSERVER_ERR_DENIED) request->problem = PS_READ_IS_DENIED;
  else if (reaction == PS_REACTION_LOOK_UP || reaction == PS_REACTION_RETRY ||
           reaction == PS_REACTION_ENTER_ANEW) {
    request->problem = PS_READ_IS_STALE;
  }
  return status;
}

void ps_ask_for_read(struct ps_read_request *request, struct ps_ask *ask) {
  size_t bytes = request->bytes;
  *ask = (struct ps_ask){.refused = refused,
                         .context = request,
                         .window_bytes = bytes < REQUEST_BYTES_MIN ? REQUEST_BYTES_MIN : bytes};
  request->step = UINT64_MAX;
  if (request->is_batch) ps_ask_for_batch(request, ask);
  else ps_ask_for_block(request, ask);
}
