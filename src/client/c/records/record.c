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
  const struct ps_block_source *source = ps_first_source(record);
  enum ps_operation operation = source->update->operation;
  if (ps_is_blockless(operation) || ps_has_columns(record)) {
    const char *verb = record->contribution == NULL ? "batch" : "contribute";
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

static void pack_text_entry(struct ps_draft *draft, const char *key, const char *text) {
  ps_pack_key(draft, key);
  ps_pack_text(draft, text, strlen(text));
}

static void pack_number_entry(struct ps_draft *draft, const char *key, double value) {
  ps_pack_key(draft, key);
  ps_pack_number(draft, value);
}

/** Returns how many entries pack_operation() writes. */
static size_t count_of_operation(const struct ps_parameter_update *update) {
  if (update->operation == PS_UPDATE_SET || update->operation == PS_UPDATE_INIT) return 0;
  return 1 + (update->operation == PS_UPDATE_MIX ? 2 : (size_t)update->has_rate);
}

static void pack_operation(struct ps_draft *draft, const struct ps_parameter_update *update) {
  if (update->operation == PS_UPDATE_MIX) {
    pack_text_entry(draft, "op", "mix");
    pack_number_entry(draft, "alpha", update->alpha);
    pack_number_entry(draft, "beta", update->beta);
  } else if (update->operation == PS_UPDATE_GRADIENT) {
    pack_text_entry(draft, "op", "grad");
    if (update->has_rate) pack_number_entry(draft, "lr", update->rate);
  }
}

static void write_push_entries(struct ps_draft *draft, const struct ps_block_source *source,
                               bool names_version) {
  const struct ps_parameter_update *update = source->update;
  if (update->encoding != PSERVER_AS_IS) {
    ps_draft_text(draft, "encoding", ps_encoding_name(update->encoding));
  }
  if (update->has_norm) {
    ps_draft_key(draft, "norm");
    ps_pack_number(draft, update->norm);
  }
  draft->entries += (uint32_t)count_of_operation(update);
  pack_operation(draft, update);
  if (update->operation == PS_UPDATE_GRADIENT) {
    if (source->step > 0) ps_draft_whole(draft, "step", source->step);
    if (names_version) ps_draft_whole(draft, "seen", source->seen);
  }
  if (source->slice != NULL && !source->slice->is_whole_block) ps_write_part_entry(draft, source->slice);
}

/** Writes the entries of a record of one block, a clock or a note that follow those of every record. */
static void write_single_entries(struct ps_draft *draft, const struct ps_record *record) {
  const struct ps_block_source *source = ps_first_source(record);
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
  else if (source->update->operation != PS_UPDATE_SET) write_push_entries(draft, source, record->names_versions);
}

/* Writes batches as messages. */

/** Whether the columns of a run name the versions that gradients were made from. */
static bool has_seen_column(const struct ps_record *record, const struct ps_run *run) {
  return record->names_versions && run->has_seen;
}

/** Returns the bytes of the scales of all entries of a run; 0 if it has none. */
static size_t scale_bytes(const struct ps_run *run) {
  size_t bytes = 0;
  if (!ps_is_grouped(run->encoding)) return 0;
  for (size_t i = 0; i < run->entries; i++) bytes += ps_scale_bytes(run->sources[i]->elements);
  return bytes;
}

/** Returns the bytes of the elements of all entries of a run, without their scales. */
static size_t value_bytes(const struct ps_run *run) {
  pserver_encoding encoding = run->encoding;
  if (!ps_is_grouped(encoding)) return ps_encoded_bytes(run->dtype, encoding, run->elements);
  size_t bytes = 0;
  for (size_t i = 0; i < run->entries; i++) bytes += ps_code_bytes(encoding, run->sources[i]->elements);
  return bytes;
}

static void pack_run(struct ps_draft *draft, const struct ps_record *record, const struct ps_run *run) {
  const struct ps_parameter_update *update = run->sources[0]->update;
  bool is_encoded = update->encoding != PSERVER_AS_IS;
  bool is_e3m0 = update->encoding == PSERVER_ENCODING_E3M0;
  bool is_part = run->form != PS_ENTRY_WHOLE;
  bool has_seen = has_seen_column(record, run);
  size_t lengths = (size_t)ps_is_grouped(update->encoding) + is_e3m0;
  ps_pack_map(draft, 4 + (size_t)is_encoded + lengths + count_of_operation(update) + is_part + run->has_norms +
                         has_seen);
  pack_text_entry(draft, "verb", verb_of(update->operation));
  pack_text_entry(draft, "dtype", ps_dtype_name(run->dtype));
  ps_pack_key(draft, "entries");
  ps_pack_whole(draft, run->entries);
  ps_pack_key(draft, "elements");
  ps_pack_whole(draft, run->elements);
  if (is_encoded) pack_text_entry(draft, "encoding", ps_encoding_name(update->encoding));
  if (ps_is_grouped(update->encoding)) {
    ps_pack_key(draft, "scales");
    ps_pack_whole(draft, scale_bytes(run) / sizeof(float));
  }
  if (is_e3m0) {
    ps_pack_key(draft, "codes");
    ps_pack_whole(draft, value_bytes(run));
  }
  pack_operation(draft, update);
  if (is_part) {
    ps_pack_key(draft, "part");
    ps_pack_list(draft, run->form == PS_ENTRY_ROWS ? 1 : 2);
    ps_pack_whole(draft, run->rows);
    if (run->form == PS_ENTRY_ELEMENTS) ps_pack_whole(draft, run->inner);
  }
  if (run->has_norms) {
    ps_pack_key(draft, "norms");
    ps_pack_flag(draft, true);
  }
  if (has_seen) {
    ps_pack_key(draft, "seen");
    ps_pack_flag(draft, true);
  }
}

static void pack_whole_entry(struct ps_draft *draft, const char *key, uint64_t value) {
  ps_pack_key(draft, key);
  ps_pack_whole(draft, value);
}

static void pack_contribution(struct ps_draft *draft, const struct ps_record *record) {
  const struct ps_contribution *contribution = record->contribution;
  bool tells_time = contribution->step_ms >= 0;
  ps_pack_map(draft, 8 + (size_t)tells_time);
  ps_pack_key(draft, "fragment");
  ps_pack_name(draft, contribution->fragment);
  pack_whole_entry(draft, "base", contribution->base);
  pack_whole_entry(draft, "steps", contribution->steps);
  pack_whole_entry(draft, "tokens", contribution->tokens);
  pack_text_entry(draft, "form", contribution->form == PSERVER_PARAMETERS ? "parameters" : "displacement");
  if (tells_time) pack_number_entry(draft, "stepMs", contribution->step_ms);
  pack_whole_entry(draft, "id", contribution->id);
  pack_whole_entry(draft, "part", record->part);
  pack_whole_entry(draft, "parts", record->parts);
}

/** Writes the entries of a header with runs that follow those of every record. */
static void write_batch_entries(struct ps_draft *draft, const struct ps_record *record) {
  uint64_t step = ps_first_source(record)->step;
  size_t runs = 0;
  for (const struct ps_run *run = record->runs; run != NULL; run = run->next) runs++;
  if (step > 0) ps_draft_whole(draft, "step", step);
  if (record->contribution != NULL) {
    ps_draft_key(draft, "contribution");
    pack_contribution(draft, record);
  }
  ps_draft_key(draft, "runs");
  ps_pack_list(draft, runs);
  for (const struct ps_run *run = record->runs; run != NULL; run = run->next) pack_run(draft, record, run);
}

/** Returns the bytes of the columns and elements of all runs. */
static size_t batch_bytes(const struct ps_record *record) {
  size_t bytes = 0;
  for (const struct ps_run *run = record->runs; run != NULL; run = run->next) {
    size_t lengths = 2 + (size_t)(run->form != PS_ENTRY_WHOLE) + (run->form == PS_ENTRY_ELEMENTS);
    size_t doubles = (size_t)run->has_norms + has_seen_column(record, run);
    bytes += lengths * ps_uint32_column_bytes(run->entries) + ps_uint32_column_bytes(run->rows) +
             ps_uint32_column_bytes(run->inner) + doubles * ps_float64_column_bytes(run->entries) +
             ps_padded_bytes(scale_bytes(run)) + ps_padded_bytes(value_bytes(run));
  }
  return bytes;
}

/** Where the next numbers of the columns of a run go. */
struct column_cursors {
  uint8_t *numbers;
  uint8_t *counts;
  uint8_t *rows;
  uint8_t *inner;
  uint8_t *row_list;
  uint8_t *inner_list;
  uint8_t *norms;
  uint8_t *seen;
  uint8_t *scales;
  uint8_t *values;
};

static void place_columns(const struct ps_record *record, const struct ps_run *run, uint8_t **at,
                          struct column_cursors *next) {
  size_t entries = run->entries;
  size_t parts = run->form == PS_ENTRY_WHOLE ? 0 : entries;
  size_t offsets = run->form == PS_ENTRY_ELEMENTS ? entries : 0;
  next->numbers = ps_place_column(at, entries * sizeof(uint32_t));
  next->counts = ps_place_column(at, entries * sizeof(uint32_t));
  next->rows = ps_place_column(at, parts * sizeof(uint32_t));
  next->inner = ps_place_column(at, offsets * sizeof(uint32_t));
  next->row_list = ps_place_column(at, run->rows * sizeof(uint32_t));
  next->inner_list = ps_place_column(at, run->inner * sizeof(uint32_t));
  next->norms = ps_place_column(at, run->has_norms ? entries * sizeof(double) : 0);
  next->seen = ps_place_column(at, has_seen_column(record, run) ? entries * sizeof(double) : 0);
  next->scales = ps_place_column(at, scale_bytes(run));
  next->values = ps_place_column(at, value_bytes(run));
}

/** Writes the numbers of a part: how many there are, and its lists. */
static void put_part(struct column_cursors *next, const struct ps_part_slice *slice) {
  ps_put_uint32(&next->rows, (uint32_t)slice->row_count);
  ps_put_uint32_list(&next->row_list, slice->rows, slice->row_count);
  if (slice->inner == NULL) return;
  ps_put_uint32(&next->inner, (uint32_t)slice->inner_count);
  ps_put_uint32_list(&next->inner_list, slice->inner, slice->inner_count);
}

/** Writes the columns and elements of a run at `*at`, and moves `*at` behind them. */
static void write_run(const struct ps_record *record, const struct ps_run *run, uint8_t **at) {
  struct column_cursors next;
  bool has_seen = has_seen_column(record, run);
  pserver_encoding encoding = run->encoding;
  bool is_grouped = ps_is_grouped(encoding);
  place_columns(record, run, at, &next);
  for (size_t i = 0; i < run->entries; i++) {
    const struct ps_block_source *source = run->sources[i];
    const struct ps_parameter_update *update = source->update;
    ps_put_uint32(&next.numbers, ps_number_of_block(update->parameter, source->index));
    ps_put_uint32(&next.counts, (uint32_t)source->elements);
    if (run->form != PS_ENTRY_WHOLE) put_part(&next, source->slice);
    /* Where hosts need no norm, they do not look at it. */
    if (run->has_norms) ps_put_float64(&next.norms, update->has_norm ? update->norm : 0);
    if (has_seen) ps_put_float64(&next.seen, (double)source->seen);
    ps_write_source(source, next.scales, next.values);
    if (is_grouped) next.scales += ps_scale_bytes(source->elements);
    next.values += is_grouped ? ps_code_bytes(encoding, source->elements) : ps_source_bytes(source);
  }
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
  if (ps_has_columns(record)) write_batch_entries(draft, record);
  else write_single_entries(draft, record);
}

/** Writes elements in an encoding that has no groups; returns `crc`, the checksum of the bytes before, updated with
 * them. */
static uint32_t copy_elements(uint8_t *target, const uint8_t *from, uint64_t elements,
                              const struct ps_parameter_update *update, uint32_t crc) {
  size_t from_bytes = ps_dtype_bytes(update->parameter->dtype);
  size_t to_bytes = ps_encoded_bytes(update->parameter->dtype, update->encoding, 1);
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
  const struct ps_block_source *source = ps_first_source(record);
  uint8_t *target = bytes + draft->buffer.size;
  memcpy(bytes, draft->buffer.data, draft->buffer.size);
  if (ps_is_blockless(source->update->operation)) return;
  uint32_t crc = ps_draft_crc(draft);
  if (ps_has_columns(record)) {
    uint8_t *end = target;
    for (const struct ps_run *run = record->runs; run != NULL; run = run->next) write_run(record, run, &end);
    crc = ps_crc32_update(crc, target, (size_t)(end - target));
  } else if (source->slice == NULL && !ps_is_grouped(source->update->encoding)) {
    crc = copy_elements(target, source->values, source->elements, source->update, crc);
  } else {
    bool is_part = source->slice != NULL && !source->slice->is_whole_block;
    uint8_t *scales = target + (is_part ? ps_write_part_index(source->slice, target) : 0);
    size_t own_bytes = ps_is_grouped(source->update->encoding) ? ps_scale_bytes(source->elements) : 0;
    ps_write_source(source, scales, scales + own_bytes);
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
  const struct ps_block_source *first = ps_first_source(record);
  size_t data_bytes = ps_has_columns(record) ? batch_bytes(record) : first->data_bytes;
  struct ps_draft draft;
  ps_draft_begin(&draft);
  write_entries(&draft, identity, record);
  pserver_status status = ps_is_blockless(first->update->operation)
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
