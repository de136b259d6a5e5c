/* Writes journal records as messages. */
#include "push/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors/errors.h"
#include "push/batch-record.h"
#include "push/note.h"
#include "push/part-push.h"
#include "wire/crc32.h"
#include "wire/dtypes.h"

void ps_record_subject(const struct ps_identity *identity, const struct ps_update_record *record,
                       char subject[PS_SUBJECT_SIZE]) {
  const struct ps_update_source *source = record->first;
  enum ps_operation operation = source->update->operation;
  if (ps_is_blockless(operation) || record->blocks > 1) {
    const char *verb = "batch";
    if (operation == PS_UPDATE_CLOCK) verb = "clock";
    if (operation == PS_UPDATE_NOTE) verb = "note";
    snprintf(subject, PS_SUBJECT_SIZE, "ps.%s.log.%u.trainer.%s.%s", identity->job, source->shard,
             identity->id, verb);
    return;
  }
  snprintf(subject, PS_SUBJECT_SIZE, "ps.%s.log.%u.trainer.%s.%s.%s.%u", identity->job, source->shard,
           identity->id, ps_verb_of(operation), source->update->parameter->token,
           (unsigned)source->index);
}

static void write_init_entries(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  ps_draft_key(draft, "shape");
  ps_pack_shape(draft, parameter->shape, parameter->rank);
  ps_draft_whole(draft, "start", source->start);
  ps_draft_whole(draft, "count", source->elements);
  ps_draft_key(draft, "config");
  ps_pack_raw(draft, parameter->config, parameter->config_bytes);
}

uint64_t ps_seen_version(const struct ps_update_source *source) {
  const struct ps_parameter_update *update = source->update;
  /* Gradients of a step need no version: a step defines what they were made from. */
  if (update->seen == NULL || source->step > 0) return 0;
  return __atomic_load_n(&update->seen[source->index], __ATOMIC_RELAXED);
}

static void write_push_entries(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_parameter_update *update = source->update;
  const char *encoding = ps_encoding_name(update->encoding);
  if (encoding != NULL) ps_draft_text(draft, "encoding", encoding);
  if (update->has_norm) ps_draft_number(draft, "norm", update->norm);
  if (update->operation == PS_UPDATE_MIX) {
    ps_draft_text(draft, "op", "mix");
    ps_draft_number(draft, "alpha", update->alpha);
    ps_draft_number(draft, "beta", update->beta);
  } else {
    ps_draft_text(draft, "op", "grad");
    if (update->has_rate) ps_draft_number(draft, "lr", update->rate);
    if (source->step > 0) ps_draft_whole(draft, "step", source->step);
    if (source->seen > 0) ps_draft_whole(draft, "seen", source->seen);
  }
  if (source->slice != NULL && !source->slice->is_whole_block) ps_write_part_entry(draft, source->slice);
}

/** Writes the entries of a record of one block, a clock or a note that follow those of every record. */
static void write_single_entries(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  if (source->update->operation == PS_UPDATE_CLOCK) {
    ps_draft_whole(draft, "step", source->step);
    return;
  }
  if (source->update->operation == PS_UPDATE_NOTE) {
    ps_draft_key(draft, "note");
    ps_pack_note(draft, source->update->note, source->update->note_count);
    return;
  }
  ps_draft_whole(draft, "epoch", parameter->epoch);
  ps_draft_text(draft, "dtype", ps_dtype_name(parameter->dtype));
  if (source->update->operation == PS_UPDATE_INIT) write_init_entries(draft, source);
  else if (source->update->operation != PS_UPDATE_SET) write_push_entries(draft, source);
}

/** Writes the entries of a record, without the envelope and the tensor bytes. */
static void write_entries(struct ps_draft *draft, const struct ps_identity *identity,
                          const struct ps_update_record *record, const struct ps_record_head *head) {
  char reply[PS_REPLY_SIZE];
  snprintf(reply, sizeof reply, "%s.applied", identity->inbox);
  ps_draft_whole(draft, "session", head->session);
  ps_draft_whole(draft, "n", head->n);
  ps_draft_whole(draft, "done", head->done);
  ps_draft_text(draft, "reply", reply);
  if (record->blocks > 1) ps_write_batch_entries(draft, record);
  else write_single_entries(draft, record->first);
}

/** Writes elements in the update's encoding; returns `crc`, the checksum of the bytes before, updated with
 * them. */
static uint32_t copy_elements(uint8_t *target, const uint8_t *from, uint64_t elements,
                              const struct ps_parameter_update *update, uint32_t crc) {
  size_t from_bytes = ps_dtype_bytes(update->parameter->dtype);
  size_t to_bytes = ps_encoded_bytes(update->parameter->dtype, update->encoding);
  uint64_t chunk = PS_CRC32_CHUNK_BYTES / from_bytes;
  for (uint64_t start = 0; start < elements; start += chunk) {
    size_t n = (size_t)(elements - start < chunk ? elements - start : chunk);
    uint8_t *to = target + start * to_bytes;
    ps_write_elements(update, from + start * from_bytes, n, to);
    crc = ps_crc32_update(crc, to, n * to_bytes);
  }
  return crc;
}

static void fill_message(const struct ps_draft *draft, const struct ps_update_record *record,
                         uint8_t *bytes) {
  const struct ps_update_source *source = record->first;
  uint8_t *target = bytes + draft->buffer.size;
  memcpy(bytes, draft->buffer.data, draft->buffer.size);
  if (ps_is_blockless(source->update->operation)) return;
  uint32_t crc = ps_draft_crc(draft);
  if (record->blocks > 1) {
    crc = ps_write_batch_data(record, target, crc);
  } else if (source->slice == NULL) {
    crc = copy_elements(target, source->values, source->elements, source->update, crc);
  } else {
    ps_write_part(source->slice, source->update, PS_INDEX_NUMBER_BYTES, target);
    crc = ps_crc32_update(crc, target, source->data_bytes);
  }
  ps_seal_message(bytes, crc);
}

/** Makes the buffer hold so many bytes; its contents are lost. */
static bool reserve(struct ps_record_buffer *buffer, size_t bytes) {
  buffer->used = bytes;
  if (bytes <= buffer->capacity) return true;
  free(buffer->bytes);
  buffer->bytes = malloc(bytes);
  buffer->capacity = buffer->bytes == NULL ? 0 : bytes;
  return buffer->bytes != NULL;
}

pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_update_record *record,
                               const struct ps_record_head *head, struct ps_record_buffer *buffer) {
  size_t data_bytes = ps_record_data_bytes(record);
  struct ps_draft draft;
  ps_draft_begin(&draft);
  write_entries(&draft, identity, record, head);
  pserver_status status = ps_is_blockless(record->first->update->operation)
                              ? ps_draft_end(&draft)
                              : ps_draft_end_with_data(&draft, data_bytes);
  if (status == PSERVER_OK) {
    if (reserve(buffer, draft.buffer.size + data_bytes)) {
      fill_message(&draft, record, buffer->bytes);
    } else {
      status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for a message");
    }
  }
  ps_draft_release(&draft);
  return status;
}
