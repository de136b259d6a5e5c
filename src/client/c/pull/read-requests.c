#include "pull/pull.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/** The columns of a request, and the lengths of their lists. */
struct request_columns {
  bool has_parts;
  bool has_inner;
  bool has_known;
  size_t rows;
  size_t inner;
  size_t bytes;
};

static struct request_columns columns_of(const struct ps_read_request *request, uint64_t generation) {
  struct request_columns columns = {.has_parts = false};
  size_t lengths = 1;
  for (size_t i = 0; i < request->count; i++) {
    const struct ps_block_read *read = request->blocks[i];
    columns.has_known = columns.has_known || version_to_tell(read, generation) > 0;
    if (!ps_read_is_of_part(read)) continue;
    columns.has_parts = true;
    columns.has_inner = columns.has_inner || read->part->inner_numbers != NULL;
    columns.rows += read->part->row_count;
    columns.inner += read->part->inner_count;
  }
  lengths += (size_t)columns.has_parts + columns.has_inner;
  columns.bytes = lengths * ps_uint32_column_bytes(request->count) + ps_uint32_column_bytes(columns.rows) +
                  ps_uint32_column_bytes(columns.inner) +
                  (columns.has_known ? ps_float64_column_bytes(request->count) : 0);
  return columns;
}

static void write_columns(const struct ps_read_request *request, const struct request_columns *columns,
                          uint64_t generation, uint8_t *at) {
  size_t count_bytes = request->count * sizeof(uint32_t);
  uint8_t *numbers = ps_place_column(&at, count_bytes);
  uint8_t *rows = ps_place_column(&at, columns->has_parts ? count_bytes : 0);
  uint8_t *inner = ps_place_column(&at, columns->has_inner ? count_bytes : 0);
  uint8_t *row_list = ps_place_column(&at, columns->rows * sizeof(uint32_t));
  uint8_t *inner_list = ps_place_column(&at, columns->inner * sizeof(uint32_t));
  for (size_t i = 0; i < request->count; i++) {
    const struct ps_block_read *read = request->blocks[i];
    const struct ps_part_block *part = ps_read_is_of_part(read) ? read->part : NULL;
    bool has_inner = part != NULL && part->inner_numbers != NULL;
    ps_put_uint32(&numbers, ps_number_of_block(read->parameter, read->index));
    /* A whole block has no rows, and whole rows have no offsets. */
    if (columns->has_parts) ps_put_uint32(&rows, part == NULL ? 0 : (uint32_t)part->row_count);
    if (columns->has_inner) ps_put_uint32(&inner, has_inner ? (uint32_t)part->inner_count : 0);
    if (part != NULL) ps_put_uint32_list(&row_list, part->row_numbers, part->row_count);
    if (has_inner) ps_put_uint32_list(&inner_list, part->inner_numbers, part->inner_count);
    if (columns->has_known) ps_put_float64(&at, (double)version_to_tell(read, generation));
  }
}

static pserver_status write_batch(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_read_request *request = ask->context;
  uint64_t generation = draft_condition(ask, draft);
  pserver_encoding encoding = request->blocks[0]->encoding;
  struct request_columns columns = columns_of(request, generation);
  if (encoding != PSERVER_AS_IS) ps_draft_text(draft, "encoding", ps_encoding_name(encoding));
  if (request->next > 0) ps_draft_whole(draft, "from", request->next);
  ps_draft_whole(draft, "entries", request->count);
  if (columns.has_parts) {
    ps_draft_key(draft, "part");
    ps_pack_list(draft, columns.has_inner ? 2 : 1);
    ps_pack_whole(draft, columns.rows);
    if (columns.has_inner) ps_pack_whole(draft, columns.inner);
  }
  if (columns.has_known) ps_draft_flag(draft, "have", true);
  uint8_t *bytes = malloc(columns.bytes);
  if (bytes == NULL) return ps_no_memory("%zu bytes of columns", columns.bytes);
  write_columns(request, &columns, generation, bytes);
  pserver_status status = ps_draft_end_and_append(draft, bytes, columns.bytes);
  free(bytes);
  return status;
}

/* The chunks of the answer. */

/** The largest version: whole numbers up to it are exact in float64. */
#define VERSION_MAX 9007199254740991.0

/** A well-formed chunk. */
struct chunk {
  uint64_t from;
  bool has_more;
  struct ps_position position;
  uint64_t entries;
  /** The column of versions, at any alignment. */
  const uint8_t *versions;
  const uint8_t *values;
  size_t value_bytes;
};

static bool read_form(const struct ps_message *message, struct chunk *chunk) {
  struct ps_value more;
  const struct ps_value *fields = &message->fields;
  if (!ps_map_whole(fields, "from", &chunk->from) || chunk->from >= PS_BATCH_ENTRIES_MAX ||
      !ps_map_find(fields, "more", &more) || more.type != PS_VALUE_BOOLEAN ||
      !ps_map_position(fields, &chunk->position) || !ps_map_whole(fields, "entries", &chunk->entries) ||
      chunk->entries == 0 || chunk->entries > PS_BATCH_ENTRIES_MAX ||
      message->data_bytes < ps_float64_column_bytes((size_t)chunk->entries)) {
    return false;
  }
  size_t column_bytes = ps_float64_column_bytes((size_t)chunk->entries);
  chunk->has_more = more.boolean;
  chunk->versions = message->data;
  chunk->values = message->data + column_bytes;
  chunk->value_bytes = message->data_bytes - column_bytes;
  return true;
}

static double version_in(const struct chunk *chunk, size_t place) {
  double version;
  memcpy(&version, chunk->versions + place * sizeof version, sizeof version);
  return version;
}

static bool is_version(double number) {
  return number >= 0 && number <= VERSION_MAX && floor(number) == number;
}

static pserver_status bad_form(const struct ps_read_request *request) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "shard %u: expected a chunk of the answer to a batched read; received another reply",
          request->shard);
  return ps_detail_whole("shard", request->shard);
}

static pserver_status bad_version(const struct ps_read_request *request, uint64_t entry, double received) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE, "shard %u: entry %" PRIu64 ": expected a version, or 0; received %g",
          request->shard, entry, received);
  ps_detail_whole("shard", request->shard);
  return ps_detail_whole("entry", entry);
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
          request->shard, chunk->from, expected, chunk->value_bytes);
  ps_detail_whole("shard", request->shard);
  ps_detail_whole("expected", expected);
  return ps_detail_whole("received", chunk->value_bytes);
}

/** Fails with BAD_MESSAGE if the chunk does not fit the request. */
static pserver_status check_chunk(const struct ps_read_request *request, const struct chunk *chunk) {
  uint64_t expected = 0;
  for (size_t i = 0; i < chunk->entries; i++) {
    uint64_t entry = chunk->from + i;
    double version = version_in(chunk, i);
    if (entry >= request->count) return unexpected_entry(request, entry);
    if (!is_version(version)) return bad_version(request, entry, version);
    const struct ps_block_read *read = request->blocks[entry];
    if (version == 0 && !ps_read_is_known(read)) return unexpected_entry(request, entry);
    if (version > 0) expected += ps_padded_bytes(ps_read_bytes(read));
  }
  return chunk->value_bytes == expected ? PSERVER_OK : bad_length(request, chunk, expected);
}

/** Takes the values in a chunk for the blocks that are not read yet; counts these in `*taken`. */
static pserver_status take_entries(const struct ps_read_request *request, const struct chunk *chunk,
                                   size_t *taken) {
  const uint8_t *next = chunk->values;
  for (size_t i = 0; i < chunk->entries; i++) {
    struct ps_block_read *read = request->blocks[chunk->from + i];
    uint64_t version = (uint64_t)version_in(chunk, i);
    const uint8_t *values = version == 0 ? NULL : next;
    if (version > 0) next += ps_padded_bytes(ps_read_bytes(read));
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
