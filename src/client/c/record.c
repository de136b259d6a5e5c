/* Journal records as messages. */
#include "record.h"

#include <stdio.h>
#include <string.h>

#include "crc32.h"
#include "dtypes.h"
#include "encodings.h"
#include "part-slice.h"

/** Bytes that are copied before their checksum is taken: they are still in the first cache. */
#define CHUNK_BYTES 16384

static const char *verb_of(enum operation operation) {
  if (operation == UPDATE_INIT) return "init";
  return operation == UPDATE_SET ? "set" : "push";
}

void record_subject(const struct client *client, const struct piece *piece,
                    char subject[SUBJECT_ROOM]) {
  if (piece->update->operation == UPDATE_CLOCK) {
    snprintf(subject, SUBJECT_ROOM, "ps.%s.log.%u.trainer.%s.clock", client->job, piece->shard,
             client->id);
    return;
  }
  snprintf(subject, SUBJECT_ROOM, "ps.%s.log.%u.trainer.%s.%s.%s.%u", client->job, piece->shard,
           client->id, verb_of(piece->update->operation), piece->update->parameter->token,
           (unsigned)piece->index);
}

static void write_init_entries(struct draft *draft, const struct piece *piece) {
  const struct parameter *parameter = piece->update->parameter;
  draft_key(draft, "shape");
  pack_list(draft, (size_t)parameter->rank);
  for (int32_t axis = 0; axis < parameter->rank; axis++) pack_whole(draft, parameter->shape[axis]);
  draft_whole(draft, "start", piece->start);
  draft_whole(draft, "count", piece->elements);
  draft_key(draft, "config");
  pack_raw(draft, parameter->config, parameter->config_bytes);
}

uint64_t seen_version(const struct piece *piece) {
  const struct update *update = piece->update;
  /* Within a step no gradient is behind another. */
  if (update->seen == NULL || update->step > 0 || piece->forgets_seen) return 0;
  return __atomic_load_n(&update->seen[piece->index], __ATOMIC_RELAXED);
}

static void write_push_entries(struct draft *draft, const struct piece *piece) {
  const struct update *update = piece->update;
  const char *encoding = encoding_name(update->encoding);
  if (update->has_norm) draft_number(draft, "norm", update->norm);
  if (update->operation == UPDATE_MIX) {
    draft_text(draft, "op", "mix");
    draft_number(draft, "alpha", update->alpha);
    draft_number(draft, "beta", update->beta);
  } else {
    draft_text(draft, "op", "grad");
    if (update->has_rate) draft_number(draft, "lr", update->rate);
    if (update->step > 0) draft_whole(draft, "step", update->step);
    if (piece->seen > 0) draft_whole(draft, "seen", piece->seen);
  }
  if (encoding != NULL) draft_text(draft, "encoding", encoding);
  if (piece->slice != NULL && !piece->slice->is_whole_block) write_part_entry(draft, piece->slice);
}

void write_record_entries(struct draft *draft, const struct piece *piece,
                          const struct record_head *head, const char *reply) {
  const struct parameter *parameter = piece->update->parameter;
  draft_whole(draft, "session", head->session);
  draft_whole(draft, "n", head->n);
  draft_whole(draft, "done", head->done);
  draft_text(draft, "reply", reply);
  if (piece->update->operation == UPDATE_CLOCK) {
    draft_whole(draft, "step", piece->update->step);
    return;
  }
  draft_whole(draft, "epoch", parameter->epoch);
  draft_text(draft, "dtype", dtype_name(parameter->dtype));
  if (piece->update->operation == UPDATE_INIT) write_init_entries(draft, piece);
  else if (piece->update->operation != UPDATE_SET) write_push_entries(draft, piece);
}

/** Copies elements as they travel; the checksum of what came before goes on over them. */
static uint32_t copy_elements(uint8_t *target, const uint8_t *from, uint64_t elements,
                              const struct update *update, uint32_t crc) {
  size_t from_bytes = dtype_bytes(update->parameter->dtype);
  size_t to_bytes = encoded_bytes(update->parameter->dtype, update->encoding);
  uint64_t chunk = CHUNK_BYTES / from_bytes;
  for (uint64_t start = 0; start < elements; start += chunk) {
    size_t n = (size_t)(elements - start < chunk ? elements - start : chunk);
    uint8_t *to = target + start * to_bytes;
    if (update->encoding == PSERVER_AS_IS) memcpy(to, from + start * from_bytes, n * from_bytes);
    else encode_elements(update->encoding, from + start * from_bytes, n, to);
    crc = crc32_update(crc, to, n * to_bytes);
  }
  return crc;
}

static void fill_message(const struct draft *draft, struct piece *piece) {
  uint8_t *bytes = piece->message.bytes;
  uint8_t *target = bytes + draft->buffer.size;
  memcpy(bytes, draft->buffer.data, draft->buffer.size);
  if (piece->update->operation == UPDATE_CLOCK) return;
  uint32_t crc = draft_crc(draft);
  if (piece->slice == NULL) {
    crc = copy_elements(target, piece->values, piece->elements, piece->update, crc);
  } else {
    write_part(piece->slice, piece->update, target);
    crc = crc32_update(crc, target, piece->data_bytes);
  }
  seal_message(bytes, crc);
}

pserver_status write_record(struct client *client, struct piece *piece,
                            const struct record_head *head) {
  char reply[INBOX_ROOM + 16];
  struct draft draft;
  snprintf(reply, sizeof reply, "%s.applied", client->inbox);
  draft_begin(&draft);
  write_record_entries(&draft, piece, head, reply);
  pserver_status status = piece->update->operation == UPDATE_CLOCK
                              ? draft_end(&draft)
                              : draft_end_with_data(&draft, piece->data_bytes);
  if (status == PSERVER_OK) {
    piece->message_bytes = draft.buffer.size + piece->data_bytes;
    pthread_mutex_lock(&client->lock);
    piece->message = pool_take(&client->pool, piece->message_bytes);
    pthread_mutex_unlock(&client->lock);
    if (piece->message.bytes != NULL) fill_message(&draft, piece);
    else status = fail(PSERVER_ERR_INTERNAL, "no memory for a message");
  }
  draft_release(&draft);
  return status;
}
