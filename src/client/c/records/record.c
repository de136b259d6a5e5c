#include "records/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes journal records as messages. */

/** Returns the name of an operation on blocks in messages. */
static const char *verb_of(enum ps_operation operation) {
  if (operation == PS_UPDATE_INIT) return "init";
  return operation == PS_UPDATE_SET ? "set" : "push";
}

void ps_record_subject(const struct ps_identity *identity, const struct ps_record *record,
                       char subject[PS_SUBJECT_SIZE]) {
  const struct ps_block_source *source = record->first;
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
           identity->id, verb_of(operation), source->update->parameter->token, (unsigned)source->index);
}

const char *ps_number_word(double number) {
  if (isnan(number)) return "NaN";
  if (isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return NULL;
}

static void pack_note(struct ps_draft *draft, const pserver_note_entry *entries, size_t count) {
  ps_pack_map(draft, count);
  for (size_t i = 0; i < count; i++) {
    const pserver_note_entry *entry = &entries[i];
    ps_pack_text(draft, entry->name, strlen(entry->name));
    const char *word = entry->kind == PSERVER_NOTE_NUMBER ? ps_number_word(entry->number) : NULL;
    if (entry->kind == PSERVER_NOTE_TEXT) word = entry->text;
    if (word != NULL) ps_pack_text(draft, word, strlen(word));
    else if (entry->kind == PSERVER_NOTE_FLAG) ps_pack_flag(draft, entry->flag);
    else ps_pack_number(draft, entry->number);
  }
}

static void write_init_entries(struct ps_draft *draft, const struct ps_block_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  ps_draft_key(draft, "shape");
  ps_pack_shape(draft, parameter->shape, parameter->rank);
  ps_draft_whole(draft, "start", source->start);
  ps_draft_whole(draft, "count", source->elements);
  ps_draft_key(draft, "config");
  ps_pack_raw(draft, parameter->config, parameter->config_bytes);
}

uint64_t ps_seen_version(const struct ps_block_source *source) {
  const struct ps_parameter_update *update = source->update;
  /* Gradients of a step need no version: a step defines what they were made from. */
  if (update->seen == NULL || source->step > 0) return 0;
  return __atomic_load_n(&update->seen[source->index], __ATOMIC_RELAXED);
}

static void pack_text_entry(struct ps_draft *draft, const char *key, const char *text) {
  ps_pack_key(draft, key);
  ps_pack_text(draft, text, strlen(text));
}

static void pack_number_entry(struct ps_draft *draft, const char *key, double value) {
  ps_pack_key(draft, key);
  ps_pack_number(draft, value);
}

/** Returns how many entries a group has besides verb, parameter, epoch, dtype, blocks and seen. */
static size_t count_of_operation(const struct ps_parameter_update *update) {
  if (update->operation == PS_UPDATE_SET) return 0;
  if (update->operation == PS_UPDATE_INIT) return 2;
  size_t factors = update->operation == PS_UPDATE_MIX ? 2 : update->has_rate;
  return 1 + factors + update->has_norm + (update->encoding != PSERVER_AS_IS);
}

static void pack_operation(struct ps_draft *draft, const struct ps_parameter_update *update) {
  if (update->operation == PS_UPDATE_SET) return;
  if (update->operation == PS_UPDATE_INIT) {
    ps_pack_key(draft, "shape");
    ps_pack_shape(draft, update->parameter->shape, update->parameter->rank);
    ps_pack_key(draft, "config");
    ps_pack_raw(draft, update->parameter->config, update->parameter->config_bytes);
    return;
  }
  if (update->encoding != PSERVER_AS_IS) {
    pack_text_entry(draft, "encoding", ps_encoding_name(update->encoding));
  }
  if (update->has_norm) pack_number_entry(draft, "norm", update->norm);
  if (update->operation == PS_UPDATE_MIX) {
    pack_text_entry(draft, "op", "mix");
    pack_number_entry(draft, "alpha", update->alpha);
    pack_number_entry(draft, "beta", update->beta);
  } else {
    pack_text_entry(draft, "op", "grad");
    if (update->has_rate) pack_number_entry(draft, "lr", update->rate);
  }
}

static void write_push_entries(struct ps_draft *draft, const struct ps_block_source *source) {
  draft->entries += (uint32_t)count_of_operation(source->update);
  pack_operation(draft, source->update);
  if (source->update->operation == PS_UPDATE_GRADIENT) {
    if (source->step > 0) ps_draft_whole(draft, "step", source->step);
    if (source->seen > 0) ps_draft_whole(draft, "seen", source->seen);
  }
  if (source->slice != NULL && !source->slice->is_whole_block) ps_write_part_entry(draft, source->slice);
}

/** Writes the entries of a record of one block, a clock or a note that follow those of every record. */
static void write_single_entries(struct ps_draft *draft, const struct ps_block_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  if (source->update->operation == PS_UPDATE_CLOCK) {
    ps_draft_whole(draft, "step", source->step);
    return;
  }
  if (source->update->operation == PS_UPDATE_NOTE) {
    ps_draft_key(draft, "note");
    pack_note(draft, source->update->note, source->update->note_count);
    return;
  }
  ps_draft_whole(draft, "epoch", parameter->epoch);
  ps_draft_text(draft, "dtype", ps_dtype_name(parameter->dtype));
  if (source->update->operation == PS_UPDATE_INIT) write_init_entries(draft, source);
  else if (source->update->operation != PS_UPDATE_SET) write_push_entries(draft, source);
}

/* Writes batches as messages. */

/** Maximum bytes of a group in the header without its parameter's name and declaration. */
#define GROUP_BYTES_MAX 160

/** Returns the bytes of a whole number in a message. */
static size_t whole_bytes(uint64_t value) {
  if (value < 0x80) return 1;
  if (value <= UINT8_MAX) return 2;
  if (value <= UINT16_MAX) return 3;
  return value <= UINT32_MAX ? 5 : 9;
}

/** Returns the bytes of a map of shape and configuration in a message. */
static size_t declared_bytes(const struct ps_parameter *parameter) {
  size_t bytes = 1 + sizeof "shape" + (parameter->rank < 16 ? 1 : 3);
  for (int32_t axis = 0; axis < parameter->rank; axis++) bytes += whole_bytes(parameter->shape[axis]);
  return bytes + sizeof "config" + parameter->config_bytes;
}

size_t ps_group_bytes_max(const struct ps_parameter_update *update) {
  const struct ps_parameter *parameter = update->parameter;
  size_t declared = update->operation == PS_UPDATE_INIT ? declared_bytes(parameter) : 0;
  return GROUP_BYTES_MAX + declared + ps_batch_name_bytes_max(parameter->name);
}

/** Packs the row of an entry: its block and bytes, then the start of an init or the counts of a part. */
static void pack_row(struct ps_draft *draft, const struct ps_block_source *source) {
  const struct ps_part_slice *slice = source->slice;
  bool is_init = source->update->operation == PS_UPDATE_INIT;
  bool is_part = slice != NULL && !slice->is_whole_block;
  bool has_inner = is_part && slice->inner != NULL;
  ps_pack_list(draft, 2 + (size_t)(is_init || is_part) + has_inner);
  ps_pack_whole(draft, source->index);
  ps_pack_whole(draft, source->entry_bytes);
  if (is_init) ps_pack_whole(draft, source->start);
  if (is_part) ps_pack_whole(draft, slice->row_count);
  if (has_inner) ps_pack_whole(draft, slice->inner_count);
}

/** Packs the group that begins with an entry; returns the entry after the group, NULL if there is none. */
static const struct ps_block_source *pack_group(struct ps_draft *draft,
                                                const struct ps_block_source *first) {
  const struct ps_parameter_update *update = first->update;
  const struct ps_block_source *end = first;
  size_t blocks = 0;
  bool names_versions = false;
  for (; end != NULL && end->update == update; end = end->next) {
    blocks++;
    names_versions = names_versions || end->seen > 0;
  }
  ps_pack_map(draft, 5 + count_of_operation(update) + names_versions);
  pack_text_entry(draft, "verb", verb_of(update->operation));
  ps_pack_key(draft, "parameter");
  ps_pack_name(draft, update->parameter->name);
  ps_pack_key(draft, "epoch");
  ps_pack_whole(draft, update->parameter->epoch);
  pack_text_entry(draft, "dtype", ps_dtype_name(update->parameter->dtype));
  pack_operation(draft, update);
  ps_pack_key(draft, "blocks");
  ps_pack_list(draft, blocks);
  for (const struct ps_block_source *each = first; each != end; each = each->next) pack_row(draft, each);
  if (names_versions) {
    ps_pack_key(draft, "seen");
    ps_pack_list(draft, blocks);
    for (const struct ps_block_source *each = first; each != end; each = each->next) {
      ps_pack_whole(draft, each->seen);
    }
  }
  return end;
}

/** Writes the entries of a batch's header that follow those of every record. */
static void write_batch_entries(struct ps_draft *draft, const struct ps_record *record) {
  const struct ps_block_source *first = record->first;
  size_t groups = 1;
  for (const struct ps_block_source *each = first; each->next != NULL; each = each->next) {
    groups += each->next->update != each->update;
  }
  if (first->step > 0) ps_draft_whole(draft, "step", first->step);
  ps_draft_key(draft, "groups");
  ps_pack_list(draft, groups);
  for (const struct ps_block_source *each = first; each != NULL;) each = pack_group(draft, each);
}

/** Writes index and elements of an entry, without its padding. */
static void write_entry(const struct ps_block_source *source, uint8_t *target) {
  const struct ps_parameter_update *update = source->update;
  const struct ps_part_slice *slice = source->slice;
  if (slice == NULL) {
    ps_write_elements(update, source->values, source->elements, target);
    return;
  }
  bool has_inner = slice->inner != NULL;
  size_t packed = ps_packed_number_bytes(update->parameter, source->index, has_inner);
  ps_write_part(slice, update, packed, target);
}

/** Writes the tensor bytes; returns `crc`, the checksum of the bytes before them, updated with them. */
static uint32_t write_batch_data(const struct ps_record *record, uint8_t *target, uint32_t crc) {
  uint8_t *checked = target;
  for (const struct ps_block_source *each = record->first; each != NULL; each = each->next) {
    size_t padded = ps_padded_bytes(each->entry_bytes);
    write_entry(each, target);
    memset(target + each->entry_bytes, 0, padded - each->entry_bytes);
    target += padded;
    if (target - checked < PS_CRC32_CHUNK_BYTES && each->next != NULL) continue;
    crc = ps_crc32_update(crc, checked, (size_t)(target - checked));
    checked = target;
  }
  return crc;
}

/** Writes the entries of a record, without the envelope and the tensor bytes. */
static void write_entries(struct ps_draft *draft, const struct ps_identity *identity,
                          const struct ps_record *record) {
  char reply[PS_REPLY_SIZE];
  snprintf(reply, sizeof reply, "%s.applied", identity->inbox);
  ps_draft_whole(draft, "session", record->header.session);
  ps_draft_whole(draft, "n", record->header.n);
  ps_draft_whole(draft, "done", record->header.done);
  ps_draft_text(draft, "reply", reply);
  if (record->blocks > 1) write_batch_entries(draft, record);
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

static void fill_message(const struct ps_draft *draft, const struct ps_record *record, uint8_t *bytes) {
  const struct ps_block_source *source = record->first;
  uint8_t *target = bytes + draft->buffer.size;
  memcpy(bytes, draft->buffer.data, draft->buffer.size);
  if (ps_is_blockless(source->update->operation)) return;
  uint32_t crc = ps_draft_crc(draft);
  if (record->blocks > 1) {
    crc = write_batch_data(record, target, crc);
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

pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_record *record,
                               struct ps_record_buffer *buffer) {
  size_t data_bytes = ps_record_data_bytes(record);
  struct ps_draft draft;
  ps_draft_begin(&draft);
  write_entries(&draft, identity, record);
  pserver_status status = ps_is_blockless(record->first->update->operation)
                              ? ps_draft_end(&draft)
                              : ps_draft_end_with_data(&draft, data_bytes);
  if (status == PSERVER_OK) {
    if (reserve(buffer, draft.buffer.size + data_bytes)) {
      fill_message(&draft, record, buffer->bytes);
    } else {
      status = ps_no_memory("a message");
    }
  }
  ps_draft_release(&draft);
  return status;
}
