/* Pulls: requests for one block, or a part of one. */
#include <inttypes.h>
#include <stdio.h>

#include "calls/client.h"
#include "errors/details.h"
#include "parts/part-plan.h"
#include "pull/read-requests.h"
#include "wire/dtypes.h"
#include "wire/encodings.h"

static const struct ps_block_read *block_of(const struct ps_ask *ask) {
  const struct ps_read_request *request = ask->context;
  return request->blocks[0];
}

static pserver_status write_pull(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_block_read *read = block_of(ask);
  ps_draft_whole(draft, "epoch", read->parameter->epoch);
  ps_draft_read_condition(ask, draft);
  if (read->encoding != PSERVER_AS_IS)
    ps_draft_text(draft, "encoding", ps_encoding_name(read->encoding));
  if (read->part == NULL || read->part->is_whole_block) return ps_draft_end(draft);
  return ps_write_part_request(draft, read->part);
}

static pserver_status bad_reply(const struct ps_block_read *read) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "\"%s\" block %u: expected %" PRIu64 " elements of %s at epoch %" PRIu64
          "; received another reply",
          read->parameter->name, (unsigned)read->index, ps_read_elements(read),
          ps_dtype_name(read->parameter->dtype), read->parameter->epoch);
  ps_detail_text("parameter", read->parameter->name);
  return ps_detail_whole("block", read->index);
}

static pserver_status read_pull(struct ps_ask *ask, const struct ps_message *message) {
  struct ps_read_request *request = ask->context;
  struct ps_block_read *read = request->blocks[0];
  const struct ps_parameter *parameter = read->parameter;
  const struct ps_value *fields = &message->fields;
  struct ps_value dtype;
  struct ps_value encoding;
  struct ps_position position;
  uint64_t epoch;
  uint64_t version;
  const char *expected = ps_encoding_name(read->encoding);
  bool has_encoding = ps_map_find(fields, "encoding", &encoding);
  bool is_valid =
      ps_map_whole(fields, "epoch", &epoch) && epoch == parameter->epoch &&
      ps_map_find(fields, "dtype", &dtype) &&
      ps_value_is_text(&dtype, ps_dtype_name(parameter->dtype)) && has_encoding == (expected != NULL) &&
      (expected == NULL || ps_value_is_text(&encoding, expected)) &&
      ps_map_position(fields, &position) && ps_map_whole(fields, "version", &version) &&
      message->data_bytes == ps_read_bytes(read);
  if (!is_valid) return bad_reply(read);
  struct ps_block_state state = {version, position.generation};
  pserver_status status = ps_read_take(read, message->data, state);
  if (status == PSERVER_OK) ps_note_read_answer(request, position);
  return status;
}

static pserver_status no_owner(struct ps_ask *ask) {
  const struct ps_read_request *request = ask->context;
  const struct ps_block_read *read = request->blocks[0];
  ps_fail(PSERVER_ERR_NO_OWNER, "\"%s\" block %u: no host serves shard %u", read->parameter->name,
          (unsigned)read->index, request->shard);
  ps_detail_text("parameter", read->parameter->name);
  ps_detail_whole("block", read->index);
  return ps_detail_whole("shard", request->shard);
}

void ps_ask_for_block(struct ps_read_request *request, struct ps_ask *ask) {
  const struct ps_identity *identity = &request->client->identity;
  const struct ps_block_read *read = request->blocks[0];
  ask->write = write_pull;
  ask->read = read_pull;
  ask->nobody = no_owner;
  ask->retry_ms = PS_READ_RETRY_MS;
  snprintf(ask->subject, sizeof ask->subject, "ps.%s.block.%s.%u.%s.pull", identity->job,
           read->parameter->token, (unsigned)read->index, identity->id);
}
