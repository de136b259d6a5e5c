/* Messages by which hosts select the trainer that initializes, and by which it says that it has finished. */
#include "calls/selection.h"

#include <inttypes.h>
#include <string.h>

#include "calls/client.h"
#include "calls/declaration.h"
#include "calls/parameters.h"
#include "errors/details.h"
#include "wire/clock.h"

static void write_create(void *context, struct ps_draft *draft) {
  const struct ps_selection *selection = context;
  ps_draft_key(draft, "parameter");
  ps_pack_declaration(draft, selection->declaration);
}

static pserver_status read_begin(void *context, const struct ps_message *message) {
  struct ps_selection *selection = context;
  struct ps_value selected;
  const struct ps_value *fields = &message->fields;
  pserver_status status = ps_read_state(fields, &selection->state);
  if (status != PSERVER_OK) return status;
  if (!ps_map_find(fields, "selected", &selected) || selected.type != PS_VALUE_BOOLEAN ||
      !ps_map_whole(fields, "epoch", &selection->epoch) ||
      !ps_map_copy_text(fields, "by", selection->by, sizeof selection->by)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "begin: expected the selected trainer; received another reply");
  }
  selection->is_selected = selected.boolean;
  if (selection->declaration == NULL || !selection->is_selected) return PSERVER_OK;
  return ps_read_declared(&selection->declaration, 1, message);
}

struct finish_request {
  uint64_t epoch;
  const struct ps_parameter *parameter;
  struct ps_position at[PS_SHARDS_MAX];
};

static void write_finish(void *context, struct ps_draft *draft) {
  const struct finish_request *request = context;
  size_t count = 0;
  for (int shard = 0; shard < PS_SHARDS_MAX; shard++) count += request->at[shard].generation != 0;
  ps_draft_whole(draft, "epoch", request->epoch);
  if (request->parameter != NULL) {
    ps_draft_key(draft, "parameter");
    ps_pack_name(draft, request->parameter->name);
  }
  ps_draft_key(draft, "at");
  ps_pack_list(draft, count);
  for (unsigned shard = 0; shard < PS_SHARDS_MAX; shard++) {
    if (request->at[shard].generation == 0) continue;
    ps_pack_map(draft, 3);
    ps_pack_text(draft, "shard", 5);
    ps_pack_whole(draft, shard);
    ps_pack_text(draft, "generation", 10);
    ps_pack_whole(draft, request->at[shard].generation);
    ps_pack_text(draft, "seq", 3);
    ps_pack_whole(draft, request->at[shard].seq);
  }
}

static void take_positions(struct ps_client *client, void *at) {
  memcpy(at, client->positions.awaited, sizeof client->positions.awaited);
}

pserver_status ps_finish_initialization(struct ps_call *call, uint64_t epoch,
                                        const struct ps_parameter *parameter) {
  struct finish_request request = {.epoch = epoch, .parameter = parameter};
  ps_run_on_io_thread(call, take_positions, request.at);
  return ps_request_lifecycle(call, &call->client->session.lifecycle, "finish", write_finish, NULL,
                              &request);
}

static pserver_status still_initializing(struct ps_call *call, const struct ps_selection *selection) {
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: trainer \"%s\" is still initializing (epoch %" PRIu64 ")",
          call->what, selection->by, selection->epoch);
  ps_detail_text("by", selection->by);
  return ps_detail_whole("epoch", selection->epoch);
}

pserver_status ps_await_selection(struct ps_call *call, bool waits, int64_t *pause_ms,
                                  struct ps_selection *selection) {
  bool is_create = selection->declaration != NULL;
  while (true) {
    pserver_status status = ps_request_lifecycle(
        call, &call->client->session.lifecycle, is_create ? "create" : "begin",
        is_create ? write_create : NULL, read_begin, selection);
    if (status != PSERVER_OK || selection->is_selected || selection->state == PSERVER_READY || !waits) {
      return status;
    }
    int64_t delay_ms = ps_varied_ms(*pause_ms);
    *pause_ms = ps_doubled_ms(*pause_ms, PS_PAUSE_MS_MAX);
    if (ps_call_remaining_ms(call) <= delay_ms) return still_initializing(call, selection);
    status = ps_call_sleep(call, delay_ms);
    if (status != PSERVER_OK) return status;
  }
}
