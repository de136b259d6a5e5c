#include "pull/pull.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Requests for blocks, and their answers. */

/** How long to retry a pull before its parameter is looked up again. */
#define RETRY_MS 1000

/** Writes the position and the step that the shard must have reached to answer; returns the generation. */
static uint64_t draft_condition(struct ps_ask *ask, struct ps_draft *draft) {
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

/** Notes that the shard has answered, at this position. */
static void note_answer(struct ps_read_request *request, struct ps_position position) {
  struct ps_client *client = request->client;
  struct ps_steps_core *steps = &client->steps.core;
  ps_positions_note(&client->positions, request->shard, position);
  /* After a fallback, when reads wait for no step, closed steps may be open again. */
  if (ps_steps_core_read_step(steps) > 0) {
    ps_steps_core_note_closed(steps, request->shard, request->step);
  }
}

/* Pulls: requests for one block, or a part of one. */

static const struct ps_block_read *block_of(const struct ps_ask *ask) {
  const struct ps_read_request *request = ask->context;
  return request->blocks[0];
}

static pserver_status write_pull(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_block_read *read = block_of(ask);
  ps_draft_whole(draft, "epoch", read->parameter->epoch);
  draft_condition(ask, draft);
  if (read->encoding != PSERVER_AS_IS) ps_draft_text(draft, "encoding", ps_encoding_name(read->encoding));
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
      ps_map_find(fields, "dtype", &dtype) && ps_value_is_text(&dtype, ps_dtype_name(parameter->dtype)) &&
      has_encoding == (expected != NULL) && (expected == NULL || ps_value_is_text(&encoding, expected)) &&
      ps_map_position(fields, &position) && ps_map_whole(fields, "version", &version) &&
      message->data_bytes == ps_read_bytes(read);
  if (!is_valid) return bad_reply(read);
  struct ps_block_state state = {version, position.generation};
  pserver_status status = ps_read_take(read, message->data, state);
  if (status == PSERVER_OK) note_answer(request, position);
  return status;
}

static pserver_status no_owner_of_block(struct ps_ask *ask) {
  const struct ps_read_request *request = ask->context;
  const struct ps_block_read *read = request->blocks[0];
  ps_fail(PSERVER_ERR_NO_OWNER, "\"%s\" block %u: no host serves shard %u", read->parameter->name,
          (unsigned)read->index, request->shard);
  ps_detail_text("parameter", read->parameter->name);
  ps_detail_whole("block", read->index);
  return ps_detail_whole("shard", request->shard);
}

/** Prepares the ps_ask of a pull; ask_for_batch() that of a batched read. */
static void ask_for_block(struct ps_read_request *request, struct ps_ask *ask) {
  const struct ps_identity *identity = &request->client->identity;
  const struct ps_block_read *read = request->blocks[0];
  ask->write = write_pull;
  ask->read = read_pull;
  ask->nobody = no_owner_of_block;
  ask->retry_ms = RETRY_MS;
  snprintf(ask->subject, sizeof ask->subject, "ps.%s.block.%s.%u.%s.pull", identity->job,
           read->parameter->token, (unsigned)read->index, identity->id);
}

/* Batched reads: blocks of a shard in one request, answered in chunks, each of some consecutive entries. */

/* The request. */

/** Returns the known version of a block, for a request that names this generation; 0 if it is of another
 * one. */
static uint64_t version_to_tell(const struct ps_block_read *read, uint64_t generation) {
  return read->known.generation == generation ? read->known.version : 0;
}

static void pack_have(struct ps_draft *draft, struct ps_block_read *const *blocks, size_t count,
                      uint64_t generation) {
  ps_pack_key(draft, "have");
  ps_pack_list(draft, count);
  for (size_t i = 0; i < count; i++) ps_pack_whole(draft, version_to_tell(blocks[i], generation));
}

/** Packs the group of entries of one parameter. */
static void pack_group(struct ps_draft *draft, struct ps_block_read *const *blocks, size_t count,
                       uint64_t generation) {
  bool has_known = false;
  for (size_t i = 0; i < count && !has_known; i++) {
    has_known = version_to_tell(blocks[i], generation) > 0;
  }
  ps_pack_map(draft, has_known ? 4 : 3);
  ps_pack_key(draft, "parameter");
  ps_pack_name(draft, blocks[0]->parameter->name);
  ps_pack_key(draft, "epoch");
  ps_pack_whole(draft, blocks[0]->parameter->epoch);
  ps_pack_key(draft, "blocks");
  ps_pack_list(draft, count);
  for (size_t i = 0; i < count; i++) ps_pack_read_entry(draft, blocks[i]->index, blocks[i]->part);
  if (has_known) pack_have(draft, blocks, count, generation);
}

/** Returns the index of the first entry after `start` that is in another group. */
static size_t end_of_group(const struct ps_read_request *request, size_t start) {
  size_t end = start + 1;
  while (end < request->count && ps_reads_share_group(request->blocks[start], request->blocks[end])) {
    end++;
  }
  return end;
}

static void pack_groups(struct ps_draft *draft, const struct ps_read_request *request,
                        uint64_t generation) {
  size_t groups = 0;
  for (size_t i = 0; i < request->count; i = end_of_group(request, i)) groups++;
  ps_draft_key(draft, "groups");
  ps_pack_list(draft, groups);
  for (size_t start = 0; start < request->count;) {
    size_t end = end_of_group(request, start);
    pack_group(draft, request->blocks + start, end - start, generation);
    start = end;
  }
}

/** Ends a request with the packed indexes of those entries that are parts. */
static pserver_status end_with_indices(struct ps_draft *draft, const struct ps_read_request *request) {
  size_t bytes = 0;
  for (size_t i = 0; i < request->count; i++) {
    bytes += ps_packed_part_bytes(request->blocks[i]->parameter, request->blocks[i]->part);
  }
  if (bytes == 0) return ps_draft_end(draft);
  uint8_t *indices = malloc(bytes);
  if (indices == NULL) return ps_no_memory("%zu bytes of indexes", bytes);
  uint8_t *at = indices;
  for (size_t i = 0; i < request->count; i++) {
    at += ps_write_packed_part(request->blocks[i]->parameter, request->blocks[i]->part, at);
  }
  pserver_status status = ps_draft_end_and_append(draft, indices, bytes);
  free(indices);
  return status;
}

static pserver_status write_batch(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_read_request *request = ask->context;
  uint64_t generation = draft_condition(ask, draft);
  pserver_encoding encoding = request->blocks[0]->encoding;
  if (encoding != PSERVER_AS_IS) ps_draft_text(draft, "encoding", ps_encoding_name(encoding));
  if (request->next > 0) ps_draft_whole(draft, "from", request->next);
  pack_groups(draft, request, generation);
  return end_with_indices(draft, request);
}

/* The chunks of the answer. */

/** A well-formed chunk. */
struct chunk {
  uint64_t from;
  bool has_more;
  struct ps_position position;
  struct ps_value versions;
  const uint8_t *data;
  size_t data_bytes;
};

static bool read_form(const struct ps_message *message, struct chunk *chunk) {
  struct ps_value more;
  const struct ps_value *fields = &message->fields;
  if (!ps_map_whole(fields, "from", &chunk->from) || chunk->from >= PS_BATCH_ENTRIES_MAX ||
      !ps_map_find(fields, "more", &more) || more.type != PS_VALUE_BOOLEAN ||
      !ps_map_position(fields, &chunk->position) || !ps_map_find(fields, "versions", &chunk->versions) ||
      chunk->versions.type != PS_VALUE_LIST || chunk->versions.count == 0 ||
      chunk->versions.count > PS_BATCH_ENTRIES_MAX) {
    return false;
  }
  chunk->has_more = more.boolean;
  chunk->data = message->data;
  chunk->data_bytes = message->data_bytes;
  return true;
}

static pserver_status bad_form(const struct ps_read_request *request) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "shard %u: expected a chunk of the answer to a batched read; received another reply",
          request->shard);
  return ps_detail_whole("shard", request->shard);
}

static pserver_status unexpected_entry(const struct ps_read_request *request, uint64_t entry) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "shard %u: received entry %" PRIu64 " without values, or beyond the request's %zu entries",
          request->shard, entry, request->count);
  ps_detail_whole("shard", request->shard);
  return ps_detail_whole("entry", entry);
}

static pserver_status bad_length(const struct ps_read_request *request, const struct chunk *chunk,
                                 uint64_t expected) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "shard %u: chunk that begins with entry %" PRIu64 ": expected %" PRIu64
          " bytes of values; received %zu",
          request->shard, chunk->from, expected, chunk->data_bytes);
  ps_detail_whole("shard", request->shard);
  ps_detail_whole("expected", expected);
  return ps_detail_whole("received", chunk->data_bytes);
}

/** Fails with BAD_MESSAGE if the chunk does not fit the request. */
static pserver_status check_chunk(const struct ps_read_request *request, const struct chunk *chunk) {
  struct ps_value entry;
  const uint8_t *at = NULL;
  uint64_t expected = 0;
  for (uint64_t i = chunk->from; ps_list_next(&chunk->versions, &at, &entry); i++) {
    uint64_t version;
    if (!ps_value_whole(&entry, &version)) return bad_form(request);
    if (i >= request->count) return unexpected_entry(request, i);
    const struct ps_block_read *read = request->blocks[i];
    if (version == 0 && !ps_read_is_known(read)) return unexpected_entry(request, i);
    if (version > 0) expected += ps_padded_bytes(ps_read_bytes(read));
  }
  return chunk->data_bytes == expected ? PSERVER_OK : bad_length(request, chunk, expected);
}

/** Takes the values in a chunk for the blocks that are not read yet; counts these in `*taken`. */
static pserver_status take_entries(const struct ps_read_request *request, const struct chunk *chunk,
                                   size_t *taken) {
  struct ps_value entry;
  const uint8_t *at = NULL;
  const uint8_t *data = chunk->data;
  for (uint64_t i = chunk->from; ps_list_next(&chunk->versions, &at, &entry); i++) {
    struct ps_block_read *read = request->blocks[i];
    uint64_t version = 0;
    ps_value_whole(&entry, &version);
    const uint8_t *values = version == 0 ? NULL : data;
    if (version > 0) data += ps_padded_bytes(ps_read_bytes(read));
    if (read->is_done) continue;
    struct ps_block_state state = {version == 0 ? read->known.version : version,
                                   chunk->position.generation};
    pserver_status status = ps_read_take(read, values, state);
    if (status != PSERVER_OK) return status;
    ++*taken;
  }
  return PSERVER_OK;
}

static pserver_status read_chunk(struct ps_ask *ask, const struct ps_message *message) {
  struct ps_read_request *request = ask->context;
  struct chunk chunk;
  size_t taken = 0;
  if (!read_form(message, &chunk)) return bad_form(request);
  pserver_status status = check_chunk(request, &chunk);
  if (status == PSERVER_OK) status = take_entries(request, &chunk, &taken);
  if (status != PSERVER_OK) return status;
  note_answer(request, chunk.position);
  while (request->next < request->count && request->blocks[request->next]->is_done) request->next++;
  if (request->next == request->count) return PSERVER_OK;
  /* If nothing new has come, the request is repeated after its pause, not at once. */
  ask->goes_on = chunk.has_more || taken == 0;
  ask->is_incomplete = !ask->goes_on;
  return PSERVER_OK;
}

static void ask_for_batch(struct ps_read_request *request, struct ps_ask *ask) {
  ask->write = write_batch;
  ask->read = read_chunk;
  ps_ask_shard(ask, &request->client->identity, request->shard, "read");
}

/* What all requests for blocks have in common: position, step, and reactions to errors. */

/** Minimum bytes of a request in the window, so that requests for tiny blocks are bounded, too. */
#define REQUEST_BYTES_MIN 16384

static pserver_status refused(struct ps_ask *ask, pserver_status status,
                              const struct ps_message *message) {
  struct ps_read_request *request = ask->context;
  enum ps_reaction reaction = ps_reaction_to(status);
  if (reaction == PS_REACTION_REPLACED && message != NULL) {
    ps_positions_note_replaced(&request->client->positions, request->shard,
                               ps_expected_position(message).generation);
    return PSERVER_OK;
  }
  /* The next request waits for no step. */
  if (reaction == PS_REACTION_ENTER_ANEW) ps_steps_core_lost_place(&request->client->steps.core);
  request->is_stale = reaction == PS_REACTION_LOOK_UP || reaction == PS_REACTION_RETRY ||
                      reaction == PS_REACTION_ENTER_ANEW;
  return status;
}

void ps_ask_for_read(struct ps_read_request *request, struct ps_ask *ask) {
  size_t bytes = request->bytes;
  *ask = (struct ps_ask){.refused = refused,
                         .context = request,
                         .window_bytes = bytes < REQUEST_BYTES_MIN ? REQUEST_BYTES_MIN : bytes};
  request->step = UINT64_MAX;
  if (request->is_batch) ask_for_batch(request, ask);
  else ask_for_block(request, ask);
}
