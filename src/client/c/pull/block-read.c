/* One block, or part of one, is read: asked for at the position that was seen last, and copied once,
 * from the message to its place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "calls/request-task.h"
#include "errors/details.h"
#include "pull/part-plan.h"
#include "pull/pull.h"
#include "wire/dtypes.h"
#include "wire/encodings.h"
#include "wire/positions.h"

/** How long an answer without an owner is retried before the parameter is looked up again. */
#define RETRY_MS 1000
/** The server gives up just before a request is repeated, so that it never holds two of one. */
#define WAIT_MS 900
/** Bytes that a request counts at least in the window, so that thousands of tiny blocks are bounded, too. */
#define REQUEST_BYTES_MIN 16384

static unsigned shard_of(const struct block_read *read) {
  const struct layout *layout = &read->parameter->layout;
  return (unsigned)((layout->first_shard + read->index) % layout->shards);
}

static pserver_status write_pull(struct ask *ask, struct draft *draft) {
  struct block_read *read = ask->context;
  int64_t left = ps_asking_remaining_ms(ask->asking);
  struct position position = ps_positions_get(&read->client->positions, shard_of(read));
  uint64_t step = ps_steps_core_read_step(&read->client->steps.core);
  if (step < read->step) read->step = step;
  ps_draft_whole(draft, "epoch", read->parameter->epoch);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  ps_draft_whole(draft, "waitMs", (uint64_t)(left < WAIT_MS ? left : WAIT_MS));
  if (step > 0) ps_draft_whole(draft, "step", step);
  if (read->encoding != PSERVER_AS_IS)
    ps_draft_text(draft, "encoding", ps_encoding_name(read->encoding));
  if (read->part == NULL || ps_part_is_whole_block(read->part)) return ps_draft_end(draft);
  return ps_write_part_request(draft, read->part);
}

static uint64_t elements_of(const struct block_read *read) {
  return read->part == NULL ? ps_block_elements(read->parameter, read->index)
                            : ps_part_elements(read->part);
}

/** Puts the elements of a part to their places, decoded before if they travel encoded. */
static pserver_status scatter_values(const struct block_read *read, const uint8_t *data,
                                     uint64_t elements) {
  size_t bytes = ps_dtype_bytes(read->parameter->dtype);
  if (read->encoding == PSERVER_AS_IS) {
    ps_scatter_part(read->part, bytes, data, read->target);
    return PSERVER_OK;
  }
  uint8_t *decoded = malloc((size_t)elements * bytes);
  if (decoded == NULL)
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %" PRIu64 " elements", elements);
  ps_decode_elements(read->encoding, data, (size_t)elements, decoded);
  ps_scatter_part(read->part, bytes, decoded, read->target);
  free(decoded);
  return PSERVER_OK;
}

static void copy_values(const struct block_read *read, const uint8_t *data, uint64_t elements) {
  size_t bytes = ps_dtype_bytes(read->parameter->dtype);
  uint8_t *target = read->target + read->index * read->parameter->layout.block_elements * bytes;
  if (read->encoding == PSERVER_AS_IS) memcpy(target, data, elements * bytes);
  else ps_decode_elements(read->encoding, data, elements, target);
}

static pserver_status bad_reply(const struct block_read *read) {
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "\"%s\" block %u: expected %" PRIu64 " elements of %s at epoch %" PRIu64
          "; received another reply",
          read->parameter->name, (unsigned)read->index, elements_of(read),
          ps_dtype_name(read->parameter->dtype), read->parameter->epoch);
  ps_detail_text("parameter", read->parameter->name);
  return ps_detail_whole("block", read->index);
}

static pserver_status read_pull(struct ask *ask, const struct message *message) {
  const struct block_read *read = ask->context;
  const struct parameter *parameter = read->parameter;
  const struct value *fields = &message->fields;
  struct value dtype;
  struct value encoding;
  struct position position;
  uint64_t epoch;
  uint64_t version;
  uint64_t elements = elements_of(read);
  const char *expected = ps_encoding_name(read->encoding);
  bool has_encoding = ps_map_find(fields, "encoding", &encoding);
  bool is_valid =
      ps_map_whole(fields, "epoch", &epoch) && epoch == parameter->epoch &&
      ps_map_find(fields, "dtype", &dtype) &&
      ps_value_is_text(&dtype, ps_dtype_name(parameter->dtype)) && has_encoding == (expected != NULL) &&
      (expected == NULL || ps_value_is_text(&encoding, expected)) &&
      ps_map_whole(fields, "generation", &position.generation) &&
      ps_map_whole(fields, "seq", &position.seq) && ps_map_whole(fields, "version", &version) &&
      message->data_bytes == elements * ps_encoded_bytes(parameter->dtype, read->encoding);
  if (!is_valid) return bad_reply(read);
  pserver_status status = PSERVER_OK;
  if (read->part == NULL) copy_values(read, message->data, elements);
  else status = scatter_values(read, message->data, elements);
  if (status != PSERVER_OK) return status;
  if (read->version != NULL && version > *read->version) *read->version = version;
  struct ps_steps_core *steps = &read->client->steps.core;
  ps_positions_note(&read->client->positions, shard_of(read), position);
  /* After a fallback reads wait for no step, and what was closed may be open again. */
  if (ps_steps_core_read_step(steps) > 0) ps_steps_core_note_closed(steps, shard_of(read), read->step);
  if (parameter->seen != NULL) {
    __atomic_store_n(&parameter->seen[read->index], version, __ATOMIC_RELAXED);
  }
  return PSERVER_OK;
}

static pserver_status no_owner(struct ask *ask) {
  const struct block_read *read = ask->context;
  ps_fail(PSERVER_ERR_NO_OWNER, "\"%s\" block %u: no host serves shard %u", read->parameter->name,
          (unsigned)read->index, shard_of(read));
  ps_detail_text("parameter", read->parameter->name);
  ps_detail_whole("block", read->index);
  return ps_detail_whole("shard", shard_of(read));
}

static pserver_status refused(struct ask *ask, pserver_status status, const struct message *message) {
  struct block_read *read = ask->context;
  enum ps_reaction reaction = ps_reaction_to(status);
  if (reaction == PS_REACTION_REPLACED && message != NULL) {
    ps_note_replaced(&read->client->positions, shard_of(read), message);
    return PSERVER_OK;
  }
  read->must_look_up = reaction == PS_REACTION_LOOK_UP || reaction == PS_REACTION_RETRY;
  return status;
}

/** Looks a parameter up again. OK if its epoch is the same; STALE_EPOCH if it was initialized anew. */
static pserver_status look_again(struct call *call, struct block_read *read) {
  struct parameter *fresh = NULL;
  const char *name = read->parameter->name;
  ps_forget_parameters(&call->client->parameters, &read->parameter, 1);
  pserver_status status = ps_find_parameters(call, &name, 1, true, &fresh);
  bool is_same = fresh != NULL && fresh->epoch == read->parameter->epoch;
  ps_parameters_unref(&fresh, 1);
  if (status != PSERVER_OK || is_same) return status;
  *read->is_replaced = true;
  return ps_fail(PSERVER_ERR_STALE_EPOCH, "\"%s\" was initialized anew while it was read", name);
}

/** The read whose parameter has to be looked up before it goes on; NULL if none has. */
static struct block_read *find_stale(struct block_read *reads, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!reads[i].must_look_up) continue;
    reads[i].must_look_up = false;
    return &reads[i];
  }
  return NULL;
}

static void make_ask(struct client *client, struct block_read *read, struct ask *ask) {
  size_t bytes = elements_of(read) * ps_encoded_bytes(read->parameter->dtype, read->encoding);
  read->client = client;
  read->step = UINT64_MAX;
  *ask = (struct ask){.write = write_pull,
                      .read = read_pull,
                      .nobody = no_owner,
                      .refused = refused,
                      .context = read,
                      .retry_ms = RETRY_MS,
                      .window_bytes = bytes < REQUEST_BYTES_MIN ? REQUEST_BYTES_MIN : bytes};
  snprintf(ask->subject, sizeof ask->subject, "ps.%s.block.%s.%u.%s.pull", client->identity.job,
           read->parameter->token, (unsigned)read->index, client->identity.id);
}

pserver_status ps_read_blocks(struct call *call, struct block_read *reads, size_t count) {
  if (count == 0) return PSERVER_OK;
  struct client *client = call->client;
  struct ask *asks = calloc(count, sizeof *asks);
  if (asks == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu requests", count);
  for (size_t i = 0; i < count; i++) make_ask(client, &reads[i], &asks[i]);
  pserver_status status;
  while ((status = ps_run_requests(call, &client->requests, asks, count)) != PSERVER_OK) {
    struct block_read *stale = find_stale(reads, count);
    if (stale == NULL) break;
    status = look_again(call, stale);
    if (status != PSERVER_OK) break;
  }
  free(asks);
  return status;
}
